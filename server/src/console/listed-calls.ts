/** Calls as the account API lists them, and how lists say them: pages and their script alike. Nothing is imported, since browsers run it. */

type Maker = { readonly id: string; readonly kind: 'key' | 'grant'; readonly name: string }

type Call = {
  readonly id: string
  readonly operation: string | null
  readonly model: string | null
  readonly end_user: { readonly id: string; readonly label: string | null } | null
  readonly tags: Readonly<Record<string, string>>
  readonly made_by: Maker | null
}

/** One that has ended, or was refused before it began. */
export type EndedCall = Call & {
  readonly outcome: 'posted' | 'voided' | 'refused'
  readonly refusal?: { readonly code: string; readonly status: number } | undefined
  readonly failed: boolean
  readonly cost: { readonly usd: string }
  readonly begun_at: string | null
  readonly ended_at: string
}

/** One that runs, or whose outcome nobody knows yet. */
export type OpenCall = Call & {
  readonly outcome: 'running' | 'unsettled'
  readonly held: { readonly usd: string }
  readonly begun_at: string
}

export type ListedCall = EndedCall | OpenCall

/** How a row looks; of the last two, money is held. */
export const KINDS = ['charged', 'free', 'voided', 'refused', 'running', 'unsettled'] as const
export type Kind = (typeof KINDS)[number]

export const isHeld = (kind: string | undefined) => kind === 'running' || kind === 'unsettled'

/** What a row says, each in its cell. */
export type Row = {
  readonly kind: Kind
  readonly id: string
  /** When it ended; of one that has not, when it began. */
  readonly at: string
  readonly day: string
  readonly clock: string
  readonly fraction: string
  readonly operation: string
  readonly model: string
  readonly maker: string
  /** What the caller was told, of a refused one. */
  readonly status: string
  readonly note: string
  readonly took: string
  /** Charged, or held; nothing where nothing was charged. */
  readonly usd: string
}

export function rowOf(call: ListedCall, nowMs: number): Row {
  const isOpen = 'held' in call
  const at = isOpen ? call.begun_at : call.ended_at
  const [day, clock, fraction] = momentParts(at, nowMs)
  return {
    kind: kindOf(call),
    id: call.id,
    at,
    day,
    clock,
    fraction,
    operation: call.operation ?? '–',
    model: call.model ?? '',
    maker: call.made_by?.name ?? '',
    status: isOpen ? '' : String(call.refusal?.status ?? ''),
    note: noteOf(call),
    took: isOpen ? '' : tookOf(call.begun_at, call.ended_at),
    usd: isOpen ? call.held.usd : call.outcome === 'posted' ? call.cost.usd : '',
  }
}

function kindOf(call: ListedCall): Kind {
  if (call.outcome !== 'posted') return call.outcome
  return /[1-9]/.test(call.cost.usd) ? 'charged' : 'free'
}

function noteOf(call: ListedCall): string {
  if ('held' in call) return call.outcome === 'unsettled' ? 'nobody knows yet' : ''
  return call.refusal?.code ?? (call.failed ? 'failed' : '')
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** In UTC: the day where it is not today, and the time with its thousandths apart. */
export function momentParts(iso: string, nowMs: number): readonly [day: string, clock: string, fraction: string] {
  const at = new Date(iso)
  const text = at.toISOString()
  const isToday = text.slice(0, 10) === new Date(nowMs).toISOString().slice(0, 10)
  const day = isToday ? '' : `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} `
  return [day, text.slice(11, 19), text.slice(19, 23)]
}

export function tookOf(begunAt: string | null, endedAt: string): string {
  return begunAt === null ? '' : spanOf(Math.max(0, Date.parse(endedAt) - Date.parse(begunAt)))
}

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

export function spanOf(ms: number): string {
  if (ms < SECOND_MS) return `${ms < 100 ? Number(ms.toFixed(1)) : Math.round(ms)} ms`
  if (ms < MINUTE_MS) return `${(ms / SECOND_MS).toFixed(ms < 10 * SECOND_MS ? 2 : 1)} s`
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min ${Math.floor((ms % MINUTE_MS) / SECOND_MS)} s`
  return `${Math.floor(ms / HOUR_MS)} h ${Math.floor((ms % HOUR_MS) / MINUTE_MS)} min`
}

/** Decimal USD, added up. */
export function sumOf(amounts: Iterable<string>): string {
  let nanos = 0n
  for (const amount of amounts) nanos += nanosOf(amount)
  const digits = nanos.toString().padStart(PLACES + 1, '0')
  return `${digits.slice(0, -PLACES)}.${digits.slice(-PLACES)}`
}

const PLACES = 9

/** Of decimal USD with nine places at the most. */
function nanosOf(usd: string): bigint {
  const [whole = '', fraction = ''] = usd.split('.')
  return BigInt(`${whole}${fraction.padEnd(PLACES, '0')}`)
}

/** By which a page of calls is looked for: the names of the account API, and `within`. */
export const FILTERS = [
  ...(['operation', 'key', 'outcome', 'model', 'tag', 'end_user'] as const),
  ...(['min_cost_usd', 'max_cost_usd', 'within', 'start', 'end'] as const),
] as const
export type Filters = Partial<Record<(typeof FILTERS)[number] | 'cursor', string>>

const WITHIN_MS: Readonly<Record<string, number>> = { hour: HOUR_MS, day: 24 * HOUR_MS, week: 168 * HOUR_MS }

/** What of a page's address, or of its form, looks for anything. */
export function filtersIn(fields: Iterable<readonly [string, string]>): Filters {
  const names: readonly string[] = [...FILTERS, 'cursor']
  return Object.fromEntries(
    [...fields].flatMap(([name, value]) => (names.includes(name) && value.trim() !== '' ? [[name, value.trim()]] : [])),
  )
}

/** As the account API is asked for them. */
export function queryOf({ within = '', ...filters }: Filters, nowMs: number): Record<string, string> {
  const span = WITHIN_MS[within]
  const query: Record<string, string> = { ...filters, limit: '50' }
  if (query.start !== undefined) query.start = asUtc(query.start)
  else if (span !== undefined) query.start = new Date(nowMs - span).toISOString()
  if (query.end !== undefined) query.end = asUtc(query.end)
  return query
}

/** A field of a form has no zone, and sometimes no seconds. */
function asUtc(text: string): string {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(text) ? `${text.length === 16 ? `${text}:00` : text}Z` : text
}

/** Whether a call that has just ended belongs to the page: as the account API decides it. */
export function isAmong(call: EndedCall, filters: Filters): boolean {
  const { operation, key, outcome, model, tag, end_user: endUser, min_cost_usd: least, max_cost_usd: most } = filters
  if (filters.cursor !== undefined || filters.end !== undefined) return false
  if (operation !== undefined && call.operation !== operation) return false
  if (key !== undefined && call.made_by?.id !== key) return false
  if (outcome !== undefined && call.outcome !== outcome) return false
  if (model !== undefined && call.model !== model) return false
  if (endUser !== undefined && call.end_user?.id !== endUser) return false
  if (tag !== undefined && !Object.entries(call.tags).some(([name, value]) => `${name}=${value}` === tag)) return false
  const cost = nanosOf(call.cost.usd)
  return (least === undefined || cost >= nanosOf(least)) && (most === undefined || cost <= nanosOf(most))
}

/** The first page of the same. */
export function fromFirst({ cursor: _, ...filters }: Filters): Filters {
  return filters
}

/** An address of the page that looks for that. */
export function hrefWith(path: string, filters: Filters): string {
  const text = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== '')).toString()
  return text === '' ? path : `${path}?${text}`
}
