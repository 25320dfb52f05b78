import { Secret } from '../kernel/secret.ts'

export type Scrub = (text: string) => string

/** Taking so short a text out of every line would spoil the log, and tell by the gaps what it is. */
const SHORTEST_SECRET = 6

/** One after the other: a key may run into the word that follows it, and would take that away from the second. */
const CREDENTIALS = [/Bearer\s+[A-Za-z0-9._~+/=-]+/gi, /fb_(live|test|at|rt|ac|dc)_[A-Za-z0-9_]+/gi]

/** The last line of defence, behind the allow-list: known secrets and whatever looks like a credential. */
export function createScrubber(secrets: readonly Secret[]): Scrub {
  const known = secrets
    .map((secret) => secret.reveal())
    .filter((value) => value.length >= SHORTEST_SECRET)
    .flatMap((value) => [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value.toWellFormed())])
    // A part must not go before the whole, of which the rest would stay.
    .sort((a, b) => b.length - a.length)
  return (text) => {
    let clean = text
    for (const value of known) if (clean.includes(value)) clean = clean.replaceAll(value, '[redacted]')
    for (const pattern of CREDENTIALS) clean = clean.replace(pattern, '[redacted]')
    return clean
  }
}

/** What must not be printed of a URL: all of it, and its password by itself, as it is written and as it is meant. */
export function secretsOf(url: Secret): readonly Secret[] {
  const text = url.reveal()
  const written = /^[^:/?#]+:\/\/[^:@/?#]*:([^/?#]*)@/.exec(text)?.[1] ?? ''
  const parsed = URL.parse(text)
  const found = [text, written, parsed?.password ?? '', parsed?.searchParams.get('password') ?? '']
  return [...new Set(found.flatMap((one) => [one, decoded(one)]))]
    .filter((one) => one !== '')
    .map((one) => new Secret(one))
}

/** As the driver does, which leaves a percent sign alone where nothing that it could mean follows. */
function decoded(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (bytes) => {
    try {
      return decodeURIComponent(bytes)
    } catch {
      return bytes
    }
  })
}
