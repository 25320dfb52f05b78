import { BlockList, isIP } from 'node:net'

/** Where an upstream is. Whatever a caller sends comes after the prefix, and can change neither. */
export type Address = {
  readonly origin: string
  /** The base URL's path without a slash at its end. */
  readonly prefix: string
}

type Options = {
  /** Plain HTTP to other machines too: whoever is on the way reads the credential. */
  readonly allowPlainHttp?: boolean
}

/** Reads a base URL as it is configured; throws a RangeError that says what to change. */
export function parseBaseUrl(text: string, { allowPlainHttp = false }: Options = {}): Address {
  const url = URL.parse(text)
  if (url === null || !/^https?:\/\//i.test(text)) throw refusal('must be a URL such as https://api.example.com')
  if (url.username !== '' || url.password !== '')
    throw refusal('must not hold a user or a password: give them as the credential')
  if (/[?#]/.test(text)) throw refusal('must not have a query or a fragment')
  if (url.protocol === 'http:' && !allowPlainHttp && !isLoopback(url.hostname))
    throw refusal('must be https: plain http is accepted only for this machine')
  const prefix = url.pathname.replace(/\/$/, '')
  if (prefix !== '' && !isTarget(prefix)) throw refusal('has a path that a proxy could read in more than one way')
  return { origin: url.origin, prefix }
}

function refusal(what: string): RangeError {
  return new RangeError(`The base URL ${what}.`)
}

/**
 * What stands twice where a target follows the prefix of a base URL, such as `/v1` of https://api.example.com/v1 and /v1/chat/completions;
 * undefined where nothing does. Vendors print their base URLs both ways.
 */
export function doubledPath(prefix: string, targets: readonly string[]): string | undefined {
  const base = segmentsOf(prefix)
  for (const target of targets) {
    const asked = segmentsOf(target)
    for (let count = Math.min(base.length, asked.length); count > 0; count -= 1) {
      const shared = asked.slice(0, count).join('/')
      if (base.slice(-count).join('/') === shared) return `/${shared}`
    }
  }
  return undefined
}

function segmentsOf(path: string): readonly string[] {
  return path.split('/').filter((segment) => segment !== '')
}

const TARGET_LIMIT = 8_192
/** What may stand in a request line, less what some servers take for a slash, a host or the end of the path. */
const TARGET = /^\/(?!\/)[!$-[\]-~]*$/
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:[/?]|$)/i

/** Whether this can follow an upstream's prefix as it is, without leading anywhere else than below it. */
export function isTarget(target: string): boolean {
  return target.length <= TARGET_LIMIT && TARGET.test(target) && !leadsUp(target)
}

function leadsUp(target: string): boolean {
  // Most have none, and looking for a dot is cheaper than the expression.
  if (!target.includes('.') && !target.includes('%')) return false
  const query = target.indexOf('?')
  return DOT_SEGMENT.test(query === -1 ? target : target.slice(0, query))
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  const family = isIP(host)
  return family === 0 ? host === 'localhost' : loopback.check(host, family === 4 ? 'ipv4' : 'ipv6')
}
