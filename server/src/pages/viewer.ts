import { html } from '../kernel/html.ts'

/**
 * The name of whoever is signed in, in a cookie that the browser gets with its session: pages of the website are made without asking who
 * somebody is. It is shown and decides nothing.
 */
const COOKIE = 'fb_viewer'
const FORM = /(?:^|;\s*)fb_viewer=(?<name>[A-Za-z0-9_-]{1,800})(?:;|$)/

type Age = { readonly seconds: number; readonly isSecure: boolean }

export function viewerCookie(name: string, { seconds, isSecure }: Age): string {
  const value = Buffer.from(name).toString('base64url')
  return `${COOKIE}=${value}; Max-Age=${seconds}; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
}

export function viewerIn(cookies: string | undefined): string | undefined {
  const value = FORM.exec(cookies ?? '')?.groups?.name
  return value === undefined ? undefined : Buffer.from(value, 'base64url').toString('utf8')
}

/** How the ways in are written, before it is known who asks. */
export const SIGN_IN_BUTTON = html`<a class="fb-button fb-button--plain" href="/sign-in">Sign in</a>`
export const SIGN_IN_LINK = html`<li><a href="/sign-in">Sign in</a></li>`

/** A page for somebody: their name in place of the ways in. */
export function shownTo(markup: string, name: string): string {
  const who = html`<span class="fb-hide">Signed in as </span><bdi>${name}</bdi>`
  const button = html`<a class="fb-button fb-button--plain fb-viewer" href="/console">${who}</a>`
  return markup
    .replace(String(SIGN_IN_BUTTON), () => String(button))
    .replace(String(SIGN_IN_LINK), () => String(html`<li><a href="/console">${who}</a></li>`))
}
