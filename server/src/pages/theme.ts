/** The colours that a browser has chosen, in a cookie: pages have no script that could know it otherwise. */
export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const COOKIE = 'fb_theme'
const YEAR_SECONDS = 31_536_000
const COOKIES_LIMIT = 50

export function themeIn(cookies: string | undefined): Theme {
  const found = (cookies ?? '').split(';', COOKIES_LIMIT).map((pair) => pair.trim())
  return THEMES.find((theme) => found.includes(`${COOKIE}=${theme}`)) ?? 'system'
}

/** It says nothing of who somebody is, so that a page may be kept by it. */
export function themeCookie(theme: Theme, isSecure: boolean): string {
  const age = theme === 'system' ? 0 : YEAR_SECONDS
  return `${COOKIE}=${theme}; Max-Age=${age}; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
}

/** How a button for each theme is written, before it is known which one is chosen. */
export const UNCHOSEN = 'aria-pressed="false"'

/** A page in those colours. It was written for no theme: that is for the system to say. */
export function themed(markup: string, theme: Theme): string {
  const chosen = markup.replace(`value="${theme}" ${UNCHOSEN}`, `value="${theme}" aria-pressed="true"`)
  return theme === 'system' ? chosen : chosen.replace('<html lang="en">', `<html lang="en" data-theme="${theme}">`)
}
