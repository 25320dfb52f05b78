import { decodedLoosely, foldParameter, spellingsIn } from '../gateway/loose-names.ts'
import { holdsKey } from '../identity/key-format.ts'
import type { FaultDialect } from '../wire/answer.ts'

/** Where each protocol's own SDKs send a key. */
const HEADERS: Readonly<Partial<Record<FaultDialect, string>>> = {
  anthropic: 'x-api-key: <key>',
  gemini: 'x-goog-api-key: <key>',
}
const COMMON_HEADER = 'Authorization: Bearer <key>'

/** They name a credential wherever they stand, folded as the loosest of servers would read them. */
const CREDENTIALS: ReadonlySet<string> = new Set(['apikey', 'accesstoken', 'xapikey', 'xgoogapikey', 'authorization'])

/**
 * What to say to a caller who has put a credential into the URL; undefined where there is none. URLs are kept in logs of proxies
 * and passed on to upstreams, so that a key in one is refused, whatever the parameter's name. Nothing of the URL is quoted.
 */
export function keyInUrl(url: string, dialect: FaultDialect): string | undefined {
  const at = url.indexOf('?')
  // Most URLs are a plain path, in which there is nothing to decode and no name.
  if (at === -1 && !url.includes('%') && !holdsKey(url)) return undefined
  const query = at === -1 ? '' : url.slice(at + 1)
  if (!holdsKey(decodedLoosely(url)) && !hasCredentialName(query, dialect)) return undefined
  return `Credentials in the URL are not accepted. Send yours as "${HEADERS[dialect] ?? COMMON_HEADER}", and replace a key that was in a URL.`
}

function hasCredentialName(query: string, dialect: FaultDialect): boolean {
  if (query === '') return false
  return spellingsIn(query)
    .map(foldParameter)
    .some((name) => CREDENTIALS.has(name) || (name === 'key' && dialect === 'gemini'))
}
