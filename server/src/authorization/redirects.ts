/** Where a person may be sent back to with a code: what can be read in more than one way, or is no place to go to, is refused. */

const LENGTH_LIMIT = 500
/** Visible ASCII without what readers of URLs disagree on. */
const PLAIN = /^[!$-[\]_a-z~-]+$/i
const WILDCARD = '*'
const LOOPBACKS = new Set(['localhost', '127.0.0.1', '[::1]'])
/** A scheme of an app's own, as RFC 8252 wants it: the name of a domain the other way round. */
const DOMAIN_SCHEME = /^[a-z][a-z0-9-]{0,30}(?:\.[a-z0-9-]{1,60}){1,6}:$/
/** With a dot, and yet parts of a system. */
const SYSTEM_SCHEME = /^(?:x-apple|com\.apple|com\.microsoft)\./
/** Apps whose scheme is no domain. Any other word may start a program of the system with what a stranger wrote. */
const KNOWN_APPS = new Set([
  ...['cursor:', 'vscode:', 'vscode-insiders:', 'vscodium:', 'code-oss:', 'windsurf:', 'windsurf-next:', 'zed:'],
  ...['claude:', 'chatgpt:', 'codex:', 'goose:', 'kiro:', 'trae:', 'antigravity:', 'positron:', 'jetbrains:'],
  ...['raycast:', 'warp:', 'lmstudio:', 'cherrystudio:', 'obsidian:', 'postman:', 'insomnia:'],
])

/** What is wrong with an address to be sent back to; null for a good one. */
export function whatIsWrongWith(address: string): string | null {
  const url = URL.parse(address)
  if (url === null || address.length > LENGTH_LIMIT || !PLAIN.test(address))
    return `must be URLs in ASCII of at most ${LENGTH_LIMIT} characters`
  if (address.includes('#')) return 'must not have a fragment'
  if (address.includes(WILDCARD)) return 'must not have a wildcard'
  if (url.username + url.password !== '' || /^[a-z]+:\/\/[^/?]*@/i.test(address)) return 'must not have a user'
  if (url.protocol === 'https:' || url.protocol === 'http:') return whatIsWrongOnTheWeb(address, url)
  if (KNOWN_APPS.has(url.protocol)) return null
  if (DOMAIN_SCHEME.test(url.protocol) && !SYSTEM_SCHEME.test(url.protocol)) return null
  return `must not use ${url.protocol} but https, http to this machine, or a scheme such as com.example.app`
}

function whatIsWrongOnTheWeb(address: string, url: URL): string | null {
  // Every reader has to take it for the same: no other spelling of a host, no default port, no dots in the path.
  if (url.href !== address && url.href !== `${address}/`) return `must be written plainly, as ${url.href}`
  if (url.protocol === 'http:' && !isLoopback(url)) return 'must use https, or http to localhost, 127.0.0.1 or [::1]'
  if (url.protocol === 'https:' && isLoopback(url)) return 'must use http to this machine'
  return null
}

/** Whether it leads to a program on the person's own machine, of which nobody knows whose it is. */
export function isLoopback({ hostname }: Pick<URL, 'hostname'>): boolean {
  return LOOPBACKS.has(hostname)
}

/** Whether all of them are pages of the web, to which a browser goes and no app. */
export function areWebPages(addresses: readonly string[]): boolean {
  return addresses.every((address) => {
    const url = URL.parse(address)
    return url?.protocol === 'https:' && !isLoopback(url)
  })
}

export type Destination = {
  /** What a person is shown of it. */
  readonly shown: string
  readonly kind: 'web' | 'this machine' | 'app'
  /** As a content security policy names it. */
  readonly source: string
}

export function destinationOf(address: string): Destination {
  const { protocol, host, hostname, origin } = new URL(address)
  if (protocol !== 'http:' && protocol !== 'https:') return { shown: `${protocol}//`, kind: 'app', source: protocol }
  const kind = isLoopback({ hostname }) ? 'this machine' : 'web'
  // A policy can't name an address of IPv6.
  return { shown: host, kind, source: host.startsWith('[') ? 'http:' : origin }
}
