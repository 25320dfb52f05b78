import type { Exchange } from './recorder.ts'

/** A request as it is kept: as an agent sent it, without what is secret, of one machine, or long. */
export type Recorded = {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Left out where there was none. */
  readonly body?: unknown
  /** What it cost when it was replayed for the first time. */
  readonly cost_usd: string
}

/** Stands where the key of a caller is. */
export const KEY = '{key}'
const CONNECTION = ['host', 'connection', 'content-length', 'accept-encoding']
const TEXT_MOST = 200
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi
const DEVICE = /[0-9a-f]{64}/g
const HOME = /\/[\w/.-]*agent-home-\w+/g
/** What tells the machine apart: its kernel, its system, times. */
const MACHINE: readonly (readonly [RegExp, string])[] = [
  [/OS Version: [^\n"\\]*/g, 'OS Version: Linux'],
  [/\([A-Z]\w+ \d[\d.]*; x86_64\)/g, '(Linux; x86_64)'],
  [/(unix_ms\\*":)\d+/g, '$11700000000000'],
  [/\d{4}-\d{2}-\d{2}(?=<\/current_date>)/g, '2026-01-01'],
]

/** The requests of one conversation, in which the same id is replaced by the same one. */
export function scrub(exchanges: readonly Exchange[], secret: string): readonly Omit<Recorded, 'cost_usd'>[] {
  const uuids = new Map<string, string>()
  const replaced = (uuid: string) => {
    const known = uuids.get(uuid) ?? `00000000-0000-7000-8000-${String(uuids.size + 1).padStart(12, '0')}`
    uuids.set(uuid, known)
    return known
  }
  const clean = (text: string): string => {
    const plain = text
      .replaceAll(secret, KEY)
      .replaceAll(UUID, replaced)
      .replaceAll(DEVICE, '0'.repeat(64))
      .replaceAll(HOME, '/home/agent')
    return MACHINE.reduce((one, [pattern, instead]) => one.replaceAll(pattern, instead), plain)
  }
  return exchanges.map(({ method, path, headers, body }) => ({
    method,
    path,
    headers: Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) => (CONNECTION.includes(name) ? [] : [[name, clean(value)]])),
    ),
    ...(body !== '' && {
      body: JSON.parse(body, (_, value) => (typeof value === 'string' ? cut(clean(value)) : value)),
    }),
  }))
}

/** Prompts and descriptions are their makers' own, and how long they are shows nothing. */
function cut(text: string): string {
  if (text.length <= TEXT_MOST || text.includes('sandbox:script=')) return text
  return `${text.slice(0, TEXT_MOST)} … (${text.length - TEXT_MOST} characters cut)`
}
