/** Where somebody wanted to go before they had to sign in. */
export const RETURN_TO = 'return_to'

const LENGTH_LIMIT = 1_024
/**
 * A path of plain words, and perhaps a query. Nothing in it means different things to different readers: no empty word, which would make
 * it another host, no backslash, no escape in the path and none of a control character anywhere.
 */
const PATH = /^(?:\/[A-Za-z0-9._~-]+)+(?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[2-9A-Fa-f][0-9A-Fa-f])*)?$/
const DOTS = /\/\.{1,2}(?=[/?]|$)/
/** To return there would sign out at once, or lead round in a circle. */
const NOT_THERE = ['/sign-out', '/sign-in', '/sign-up']

/** A path of this site, or undefined for whatever else was given. */
export function parseReturnTo(given: string | undefined): string | undefined {
  if (given === undefined || given.length > LENGTH_LIMIT) return undefined
  if (!PATH.test(given) || DOTS.test(given.split('?')[0] ?? '')) return undefined
  const [path] = given.split('?')
  return NOT_THERE.some((start) => path === start || path?.startsWith(`${start}/`)) ? undefined : given
}

/** The address of a page that leads on to there. */
export function withReturnTo(path: string, returnTo: string | undefined): string {
  if (returnTo === undefined) return path
  return `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams({ [RETURN_TO]: returnTo })}`
}
