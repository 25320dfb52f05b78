/** What belongs to the connection between us and the upstream, and to nobody behind us (RFC 9110, 7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

export type ReplyHeaders = Record<string, string>

/** The headers that are meant for us, names in lower case, those that came more than once joined. */
export function readReplyHeaders(given: Readonly<Record<string, string | string[] | undefined>>): ReplyHeaders {
  // Without a prototype, so that no name of a header can be a name of something else.
  const headers: ReplyHeaders = Object.create(null)
  const named = connectionOptions(given.connection)
  for (const name of Object.keys(given)) {
    const value = given[name]
    if (value === undefined || HOP_BY_HOP.has(name) || named.includes(name)) continue
    headers[name] = typeof value === 'string' ? value : value.join(', ')
  }
  return headers
}

/** Whether the body came as it is. In an encoding that we did not ask for, nothing of it is read. */
export function isPlain(headers: Readonly<ReplyHeaders>): boolean {
  return (headers['content-encoding'] ?? 'identity') === 'identity'
}

const NONE: readonly string[] = []

/** A sender can name further headers as the connection's own. */
function connectionOptions(value: string | string[] | undefined): readonly string[] {
  if (value === undefined || value === 'keep-alive' || value === 'close') return NONE
  return String(value)
    .toLowerCase()
    .split(',')
    .map((option) => option.trim())
}

/** The declared length of the body, where one is declared. The parser refuses what is not a plain number. */
export function declaredLength(headers: ReplyHeaders): number | undefined {
  const text = headers['content-length']
  return text === undefined ? undefined : Number(text)
}
