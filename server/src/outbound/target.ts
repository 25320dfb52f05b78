import { isIP } from 'node:net'
import { isTarget } from '../upstreams/address.ts'
import { OutboundFailure } from './failure.ts'

/** Where a URL of a stranger leads. */
export type Target = {
  readonly origin: string
  /** A name, or an address without brackets. */
  readonly host: string
  /** Path and query, as they go over the wire. */
  readonly path: string
  /** The operator lists its origin: it need not be public, nor https, nor at the standard port. */
  readonly isListed: boolean
}

const URL_LIMIT = 2_048
const NAME_LIMIT = 253
const HTTPS_PORT = 443
/** ASCII that every reader of URLs takes for the same: no user, no escape or backslash in the host, no fragment. */
const WRITTEN = /^https?:\/\/([\w.:[\]-]+)(?:[/?][!$-[\]-~]*)?$/i
const PORT = /:\d{1,5}$/
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/

type Policy = {
  readonly listed: ReadonlySet<string>
  /** That strangers may name. */
  readonly ports: readonly number[]
}

/** Reads a URL as a stranger wrote it; what could be read in more than one way is refused with what to change. */
export function parseTarget(text: string, { listed, ports }: Policy): Target {
  if (text.length > URL_LIMIT) throw refusal(`The URL must have at most ${URL_LIMIT} characters.`)
  const authority = WRITTEN.exec(text)?.[1]
  const url = URL.parse(text)
  if (authority === undefined || url === null)
    throw refusal('The URL must be like https://example.com/path, in ASCII, without user, password and fragment.')
  // Shorthands of addresses (127.1, 0x7f000001) are read by some and resolved as names by others.
  if (authority.replace(PORT, '').toLowerCase() !== url.hostname)
    throw refusal('The host of the URL must be written in its canonical form.')
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) === 0 && !isName(host)) throw refusal('The host of the URL is not a valid name. Correct it.')
  const path = url.pathname + url.search
  if (!isTarget(path))
    throw refusal('The path of the URL is ambiguous. Write it without empty, dot or encoded segments.')
  const isListed = listed.has(url.origin)
  if (!isListed && url.protocol !== 'https:') throw refusal('The URL must begin with https://.')
  if (!isListed && !ports.includes(Number(url.port || HTTPS_PORT)))
    throw refusal(`The port of the URL must be ${ports.join(' or ')}.`)
  return { origin: url.origin, host, path, isListed }
}

/** One without a dot at its end: certificates and lists name hosts without it. */
function isName(host: string): boolean {
  return host.length <= NAME_LIMIT && host.split('.').every((label) => LABEL.test(label))
}

function refusal(text: string): OutboundFailure {
  return new OutboundFailure('url', { text })
}
