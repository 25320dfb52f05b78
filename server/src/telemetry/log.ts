import pino from 'pino'
import type { Secret } from '../kernel/secret.ts'

const TEXT_FIELDS = [
  'request_id',
  'method',
  // The route's pattern, never the URL: a URL can carry anything.
  'route',
  'code',
  'address',
  'account_id',
  'key_id',
  'operation',
  'upstream',
  'role',
  'host',
  'signal',
  'version',
  'setting',
  'topic',
  'reason',
] as const
const NUMBER_FIELDS = ['status', 'duration_ms', 'port', 'pid', 'count'] as const

/** What a log line may say. A field that is not listed is not written, whatever a caller passes. */
export type LogFields = Partial<
  Record<(typeof TEXT_FIELDS)[number], string> & Record<(typeof NUMBER_FIELDS)[number], number> & { error: unknown }
>

const FIELDS: ReadonlySet<string> = new Set([...TEXT_FIELDS, ...NUMBER_FIELDS, 'error'])

export type Log = {
  readonly info: (message: string, fields?: LogFields) => void
  readonly warn: (message: string, fields?: LogFields) => void
  readonly error: (message: string, fields?: LogFields) => void
}

type Parts = {
  readonly level: 'info' | 'warn' | 'error' | 'silent'
  readonly write: (line: string) => void
  /** Values that may reach an error's text by roads that we don't control, such as a driver's message. */
  readonly secrets: readonly Secret[]
}

const TEXT_LIMIT = 8_192

export function createLog({ level, write, secrets }: Parts): Log {
  const scrub = createScrubber(secrets)
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => write(scrub(line)) },
  )
  const at = (name: 'info' | 'warn' | 'error') => (message: string, fields?: LogFields) => {
    if (fields === undefined) logger[name](message)
    else logger[name](allowed(fields), message)
  }
  return { info: at('info'), warn: at('warn'), error: at('error') }
}

export const silentLog: Log = { info: () => {}, warn: () => {}, error: () => {} }

function allowed(fields: LogFields): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (!FIELDS.has(name)) continue
    kept[name] =
      name === 'error' ? describeError(value) : typeof value === 'string' ? value.slice(0, TEXT_LIMIT) : value
  }
  return kept
}

/** An error's name, text, code and place, down its chain of causes. Its other properties may hold anything. */
function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return { name: typeof error }
  return {
    name: error.name,
    message: error.message.slice(0, TEXT_LIMIT),
    ...('code' in error && typeof error.code === 'string' ? { code: error.code } : {}),
    stack: error.stack?.slice(0, TEXT_LIMIT),
    ...(error.cause !== undefined && depth < 5 ? { cause: describeError(error.cause, depth + 1) } : {}),
  }
}

/** The last line of defence, behind the allow-list: known secrets and whatever looks like a credential. */
function createScrubber(secrets: readonly Secret[]): (line: string) => string {
  const known = secrets.flatMap((secret) => {
    const value = secret.reveal()
    return [...new Set([value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)])]
  })
  const credential = /\bfb_(live|test)_[A-Za-z0-9_]+|\bBearer +[A-Za-z0-9._~+/=-]+/gi
  return (line) => {
    let clean = line
    for (const value of known) if (clean.includes(value)) clean = clean.replaceAll(value, '[redacted]')
    return clean.replace(credential, '[redacted]')
  }
}
