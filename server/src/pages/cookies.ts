import type { Secret } from '../kernel/secret.ts'
import { viewerCookie } from './viewer.ts'

/**
 * What a browser keeps for us: `session` says who it is, `visit` binds forms to a browser that is nobody yet, `remembered` stands for a
 * second factor, `mail` is the address that was just written to, so that a page can name it. `issuer` is what a sign-in elsewhere was begun
 * with, and `way` where it shall lead. `asked` binds what a client asks for to the browser that it sent here.
 */
const NAMES = {
  ...{ session: 'fb_session', visit: 'fb_visit', remembered: 'fb_remembered', mail: 'fb_mail' },
  ...{ issuer: 'fb_issuer', way: 'fb_way', asked: 'fb_asked' },
} as const
export type CookieName = keyof typeof NAMES

/** Until the browser is closed, where left out. */
type Age = { readonly seconds?: number }

export type Cookies = {
  /** A token in the form that we give them; undefined for anything else, and for what is there twice. */
  readonly tokenIn: (header: string | undefined, name: CookieName) => string | undefined
  /** A short text that was put in by `putText`. */
  readonly textIn: (header: string | undefined, name: CookieName) => string | undefined
  readonly put: (name: CookieName, token: Secret, age?: Age) => string
  readonly putText: (name: CookieName, text: string, age?: Age) => string
  readonly remove: (name: CookieName) => string
  /** The name that pages show of who is signed in, for as long as the session. */
  readonly putViewer: (name: string, seconds: number) => string
  /** All that a browser has of a session. */
  readonly removeSession: () => readonly string[]
}

/** 32 random bytes in base64url. */
export const TOKEN = /^[A-Za-z0-9_-]{43}$/
const TEXT = /^[A-Za-z0-9_-]{1,600}$/
const COOKIES_LIMIT = 50

/** A cookie under its own name; undefined where it is not there, or twice. */
export function cookieIn(header: string | undefined, name: string): string | undefined {
  const start = `${name}=`
  const values = (header ?? '')
    .split(';', COOKIES_LIMIT)
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(start))
    .map((pair) => pair.slice(start.length))
  return values.length === 1 ? values[0] : undefined
}

/**
 * `__Host-` lets no other host, and no page without TLS, put one in its place. On this machine there is no TLS, and so neither the prefix
 * nor Secure.
 */
export function createCookies({ isSecure }: { readonly isSecure: boolean }): Cookies {
  const nameOf = (name: CookieName) => `${isSecure ? '__Host-' : ''}${NAMES[name]}`
  const attributes = `; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
  const written = (name: CookieName, value: string, { seconds }: Age = {}) =>
    `${nameOf(name)}=${value}${seconds === undefined ? '' : `; Max-Age=${seconds}`}${attributes}`

  function valueIn(header: string | undefined, name: CookieName, form: RegExp): string | undefined {
    const value = cookieIn(header, nameOf(name))
    return value !== undefined && form.test(value) ? value : undefined
  }

  const remove = (name: CookieName) => written(name, '', { seconds: 0 })

  return {
    tokenIn: (header, name) => valueIn(header, name, TOKEN),
    textIn(header, name) {
      const value = valueIn(header, name, TEXT)
      return value === undefined ? undefined : Buffer.from(value, 'base64url').toString('utf8')
    },
    put: (name, token, age) => written(name, token.reveal(), age),
    putText: (name, text, age) => written(name, Buffer.from(text).toString('base64url'), age),
    remove,
    putViewer: (name, seconds) => viewerCookie(name, { seconds, isSecure }),
    removeSession: () => [remove('session'), viewerCookie('', { seconds: 0, isSecure })],
  }
}
