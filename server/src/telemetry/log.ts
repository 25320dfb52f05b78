import pino from 'pino'
import type { Secret } from '../kernel/secret.ts'
import { type CallLines, createCallLines, type LoggedCalls } from './call-lines.ts'
import { createScrubber, type Scrub } from './scrubber.ts'

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
  // By name.
  'upstream',
  'upstream_id',
  'slot',
  // Of an upstream, as it is configured: nothing of what a caller sent.
  'path',
  'upstream_task',
  'role',
  'host',
  'signal',
  'version',
  'setting',
  'topic',
  'reason',
  'owner_id',
  'job',
  'amount',
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
  readonly calls: CallLines
}

type Parts = {
  readonly level: 'info' | 'warn' | 'error' | 'silent'
  /** Which calls have a line, which is one of information; none by default. */
  readonly calls?: LoggedCalls
  readonly write: (line: string) => void
  /** Values that may reach an error's text by roads that we don't control, such as a driver's message. */
  readonly secrets: readonly Secret[]
}

const TEXT_LIMIT = 8_192

const CAUSES_LIMIT = 5

export function createLog({ level, calls = 'none', write, secrets }: Parts): Log {
  const clean = createCleaner(createScrubber(secrets))
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write },
  )
  const at = (name: 'info' | 'warn' | 'error') => (message: string, fields?: LogFields) => {
    if (!logger.isLevelEnabled(name)) return
    if (fields === undefined) logger[name](clean.text(message))
    else logger[name](clean.fields(fields), clean.text(message))
  }
  const lines = createCallLines({ calls: level === 'info' ? calls : 'none', write, clean: clean.text })
  return { info: at('info'), warn: at('warn'), error: at('error'), calls: lines }
}

const NO_LINES = createCallLines({ calls: 'none', write: () => {}, clean: (text) => text })

export const silentLog: Log = { info: () => {}, warn: () => {}, error: () => {}, calls: NO_LINES }

/** Makes values fit to be written. A text is scrubbed before it is cut: half a secret would not be known as one. */
function createCleaner(scrub: Scrub) {
  const text = (value: string) => scrub(value).slice(0, TEXT_LIMIT)

  function fields(given: LogFields): Record<string, unknown> {
    const kept: Record<string, unknown> = {}
    for (const [name, value] of Object.entries(given)) {
      if (!FIELDS.has(name)) continue
      if (name === 'error') kept[name] = describeError(value)
      else if (typeof value === 'string') kept[name] = text(value)
      else if (typeof value === 'number') kept[name] = value
    }
    return kept
  }

  /** An error's name, text and code, down its chain of causes, and the place of the last of them, where it began. Its other properties may hold anything. */
  function describeError(error: unknown, depth = 0): unknown {
    if (!(error instanceof Error)) return { name: typeof error }
    const below = (inner: unknown) => describeError(inner, depth + 1)
    const isLast = !(error.cause instanceof Error) || depth === CAUSES_LIMIT
    return {
      name: text(String(error.name)),
      message: text(String(error.message)),
      ...('code' in error && typeof error.code === 'string' ? { code: text(error.code) } : {}),
      ...(isLast && typeof error.stack === 'string' ? { stack: text(error.stack) } : {}),
      ...(error.cause !== undefined && depth < CAUSES_LIMIT ? { cause: below(error.cause) } : {}),
      // A host of several addresses fails with one error for each, under one that says nothing.
      ...(error instanceof AggregateError && depth < CAUSES_LIMIT
        ? { errors: error.errors.slice(0, CAUSES_LIMIT).map(below) }
        : {}),
    }
  }

  return { text, fields }
}
