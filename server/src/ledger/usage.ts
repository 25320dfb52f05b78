import type pg from 'pg'
import { z } from 'zod'
import { invalidRequest } from '../kernel/fault.ts'
import { microsByBucket, type Nanos, nanos, wholeMicros } from '../kernel/money.ts'
import { BRIEF_KEPT_DAYS } from './retention.ts'
import type { GroupBy, UsageQuery } from './usage-query.ts'
import { COMBINED_SUMS_MOST } from './usage-sources.ts'
import { usageStatement } from './usage-statement.ts'
import { DAY_SECONDS, floorTo, HOUR_SECONDS } from './usage-window.ts'

type Counts = {
  readonly requests: bigint
  readonly failedRequests: bigint
  readonly inputTokens: bigint
  readonly outputTokens: bigint
  readonly cacheReadTokens: bigint
  readonly cacheWriteTokens: bigint
}

export type UsageSums = Counts & {
  /** Evidence times published price. */
  readonly valueMicros: bigint
  /** What was debited, less what was given back. Below zero where more was given back than debited. */
  readonly chargedMicros: bigint
}

type Times = { readonly startSeconds: number; readonly endSeconds: number }

/** A UTC day or hour, or what the window leaves of it. */
export type UsageBucket = UsageSums & Times

/** To the nano, so that groups add up to what all were charged. */
export type ExactSums = Counts & { readonly value: Nanos; readonly charged: Nanos }

export type UsageGroup = {
  readonly kind: 'group' | 'other' | 'none'
  /** Null of those that have none of what is grouped by, and of the smaller ones together. */
  readonly value: string | null
  readonly label: string | null
  readonly totals: ExactSums
  /** Those in which it has anything. */
  readonly buckets: readonly (ExactSums & Times)[]
}

export type UsageReport = {
  readonly totals: UsageSums
  readonly buckets: readonly UsageBucket[]
  /** Where it is grouped: the largest first, then the smaller ones together, then what has no group. */
  readonly groups?: readonly UsageGroup[]
  /** How many the smaller ones are, where they are not too many to count. */
  readonly otherGroups?: number
}

/** The same with totals and buckets to the nano beside those in micros. */
export type ExactUsageReport = UsageReport & {
  readonly exact: { readonly totals: ExactSums; readonly buckets: readonly (ExactSums & Times)[] }
}

const BUCKETS_MAX = 1_100
/** Every group may have as many. */
const GROUPED_BUCKETS_MAX = 400

const row = z.object({
  part: z.enum(['all', 'group', 'other', 'some']),
  /** What it is grouped by. */
  item: z.string().nullable(),
  label: z.string().nullable(),
  /** How many there are; null where they are too many to count. */
  groups: z.int().nullable(),
  at: z.number(),
  requests: z.bigint(),
  failed_requests: z.bigint(),
  input_tokens: z.bigint(),
  output_tokens: z.bigint(),
  cache_read_tokens: z.bigint(),
  cache_write_tokens: z.bigint(),
  value: z.bigint(),
  charged: z.bigint(),
  /** How many combined sums the report is made of; more than may be where there are too many. */
  read: z.int(),
})
type Row = z.output<typeof row>

/** Buckets, groups and totals come from one statement, hence from one state of the ledger, and add up to the micro; groups to the nano. */
export async function readUsage(pool: pg.Pool, query: UsageQuery): Promise<UsageReport> {
  const { exact: _, ...report } = await readExactUsage(pool, query)
  return report
}

export async function readExactUsage(pool: pg.Pool, query: UsageQuery): Promise<ExactUsageReport> {
  const windows = bucketWindows(query)
  const kept = isNamed(query) || isOfCalls(query) ? await readKept(pool) : NOTHING_KEPT
  if (isNamed(query)) requireKept(query, kept.hoursFrom)
  const { text, values } = usageStatement(query, kept.combinedUntil)
  const { rows: found } = await pool.query({ text, values: [...values] })
  const rows = z.array(row).parse(found)
  requireBounded(rows)
  const all = new Map(rows.filter(({ part }) => part === 'all').map((one) => [one.at, exactOf(one)]))
  const sums = windows.map(({ at }) => all.get(at) ?? NOTHING)
  const valueMicros = microsByBucket(sums.map(({ value }) => value))
  const chargedMicros = microsByBucket(sums.map(({ charged }) => charged))
  const totals = added(sums)
  const report = {
    totals: inMicros(totals, wholeMicros(totals.value), wholeMicros(totals.charged)),
    buckets: windows.map(({ at: _, ...times }, place) => ({
      ...times,
      ...inMicros(sums[place] ?? NOTHING, valueMicros[place] ?? 0n, chargedMicros[place] ?? 0n),
    })),
    exact: {
      totals,
      buckets: windows.map(({ at: _, ...times }, place) => ({ ...times, ...(sums[place] ?? NOTHING) })),
    },
  }
  if (query.groupBy === undefined) return report
  const groups = groupsIn(rows, windows, sums)
  const shown = groups.filter(({ kind }) => kind === 'group').length
  const counted = rows.length === 0 ? 0 : rows[0]?.groups
  return { ...report, groups, ...(typeof counted === 'number' && { otherGroups: Math.max(0, counted - shown) }) }
}

type BucketWindow = Times & { readonly at: number }

function bucketWindows({ startSeconds, endSeconds, bucket = 'day', groupBy }: UsageQuery): readonly BucketWindow[] {
  if (startSeconds > endSeconds) throw invalidRequest('start_time is after end_time. Swap them.')
  if (startSeconds === endSeconds) return []
  const width = bucket === 'day' ? DAY_SECONDS : HOUR_SECONDS
  const most = groupBy === undefined ? BUCKETS_MAX : GROUPED_BUCKETS_MAX
  const first = floorTo(startSeconds, width)
  const buckets = Math.ceil((endSeconds - first) / width)
  if (buckets > most)
    throw invalidRequest(`The time window is too long: the limit is ${most} ${bucket}s. Ask for a shorter one.`)
  return Array.from({ length: buckets }, (_, place) => {
    const at = first + place * width
    return { at, startSeconds: Math.max(at, startSeconds), endSeconds: Math.min(at + width, endSeconds) }
  })
}

/** Further back there are sums by end user and by tag of days alone, and of these not for some operations or models. */
function requireKept(query: UsageQuery, hoursFrom: number): void {
  const { startSeconds, endSeconds, nowSeconds = 0, bucket, filter = {}, groupBy } = query
  const { operation, model } = filter
  // What is gone is gone, also where a clock that ran ahead has been set back since.
  const keptFrom = Math.max(floorTo(nowSeconds, DAY_SECONDS) - BRIEF_KEPT_DAYS * DAY_SECONDS, hoursFrom)
  const isWhole = (seconds: number) => seconds >= keptFrom || seconds % DAY_SECONDS === 0
  const isOfDays = bucket !== 'hour' && isWhole(startSeconds) && isWhole(endSeconds)
  const isOfNames = operation === undefined && model === undefined && (groupBy === undefined || isOfName(groupBy))
  if (startSeconds >= keptFrom || (isOfDays && isOfNames)) return
  throw invalidRequest(
    `Usage by end user and by tag goes back ${BRIEF_KEPT_DAYS} days. Older usage is kept by whole days (UTC), without other filters or groups. Start later, or at midnight UTC.`,
  )
}

/** What was read of too many is no report. */
function requireBounded([first]: readonly Row[]): void {
  if (first === undefined || first.read <= COMBINED_SUMS_MOST) return
  throw invalidRequest(
    `This report would add up more than ${COMBINED_SUMS_MOST.toLocaleString('en-US')} sums, which is the limit. Ask for a shorter window, for bucket=day, for one key, or for only one filter or group.`,
  )
}

const isOfName = (groupBy: GroupBy) => groupBy === 'end_user' || typeof groupBy === 'object'

function isNamed({ filter = {}, groupBy }: UsageQuery): boolean {
  return filter.tag !== undefined || filter.endUserId !== undefined || (groupBy !== undefined && isOfName(groupBy))
}

/** Of some operations or models: together with a group, this may combine two. */
function isOfCalls({ filter = {} }: UsageQuery): boolean {
  return filter.operation !== undefined || filter.model !== undefined
}

/** Since when there are sums of hours by end user and by tag, and until when combined sums of days, in seconds. */
type Kept = { readonly hoursFrom: number; readonly combinedUntil: number }
const NOTHING_KEPT: Kept = { hoursFrom: 0, combinedUntil: 0 }
const keptRow = z.tuple([z.object({ hoursFrom: z.number(), combinedUntil: z.number() })])

async function readKept(pool: pg.Pool): Promise<Kept> {
  const { rows } = await pool.query(
    `select coalesce((select extract(epoch from hours_from)::float8 from usage_kept), 0) as "hoursFrom",
       coalesce((select extract(epoch from until)::float8 from usage_combined), 0) as "combinedUntil"`,
  )
  return keptRow.parse(rows)[0]
}

/** What no group has is what is left of all. Where `some` says what all groups have, the smaller ones are what the largest leave of it. */
function groupsIn(
  rows: readonly Row[],
  windows: readonly BucketWindow[],
  all: readonly ExactSums[],
): readonly UsageGroup[] {
  const told = rows.filter(({ part }) => part === 'group' || part === 'other')
  const largest = [...Map.groupBy(told, ({ part, item }) => `${part} ${item}`).values()]
    .map((some) => groupOf(some, windows))
    .sort((one, other) => rank(one, other))
  const byBucket = (some: readonly Row[]) => {
    const at = Map.groupBy(some, (one) => one.at)
    return windows.map((window) => added((at.get(window.at) ?? []).map(exactOf)))
  }
  const grouped = byBucket(told)
  const ofSome = rows.filter(({ part }) => part === 'some')
  const having = ofSome.length === 0 ? grouped : byBucket(ofSome)
  return [...largest, ...restOf('other', having, grouped, windows), ...restOf('none', all, having, windows)]
}

function restOf(
  kind: 'other' | 'none',
  of: readonly ExactSums[],
  told: readonly ExactSums[],
  windows: readonly BucketWindow[],
): readonly UsageGroup[] {
  const rest = of.map((sums, place) => minus(sums, told[place] ?? NOTHING))
  if (rest.every(isNothing)) return []
  const buckets = windows.flatMap(({ at: _, ...times }, place) => {
    const sums = rest[place] ?? NOTHING
    return isNothing(sums) ? [] : [{ ...times, ...sums }]
  })
  return [{ kind, value: null, label: null, totals: added(rest), buckets }]
}

function groupOf(rows: readonly Row[], windows: readonly BucketWindow[]): UsageGroup {
  const sums = new Map(rows.map((one) => [one.at, exactOf(one)]))
  return {
    kind: rows[0]?.part === 'other' ? 'other' : 'group',
    value: rows[0]?.item ?? null,
    label: rows.find(({ label }) => label !== null)?.label ?? null,
    totals: added([...sums.values()]),
    buckets: windows.flatMap(({ at, ...times }) => {
      const own = sums.get(at)
      return own === undefined ? [] : [{ ...times, ...own }]
    }),
  }
}

/** The largest first, and those that are told as one behind them. */
function rank(one: UsageGroup, other: UsageGroup): number {
  if (one.kind !== other.kind) return one.kind === 'other' ? 1 : -1
  const [a, b] = [one.totals, other.totals]
  const order = b.charged === a.charged ? b.requests - a.requests : b.charged - a.charged
  if (order !== 0n) return order > 0n ? 1 : -1
  return (one.value ?? '') < (other.value ?? '') ? -1 : 1
}

const NOTHING: ExactSums = {
  requests: 0n,
  failedRequests: 0n,
  inputTokens: 0n,
  outputTokens: 0n,
  cacheReadTokens: 0n,
  cacheWriteTokens: 0n,
  value: nanos(0n),
  charged: nanos(0n),
}

function exactOf(one: Row): ExactSums {
  return {
    requests: one.requests,
    failedRequests: one.failed_requests,
    inputTokens: one.input_tokens,
    outputTokens: one.output_tokens,
    cacheReadTokens: one.cache_read_tokens,
    cacheWriteTokens: one.cache_write_tokens,
    value: nanos(one.value),
    charged: nanos(one.charged),
  }
}

function added(some: readonly ExactSums[]): ExactSums {
  return some.reduce((sums, one) => joined(sums, one, 1n), NOTHING)
}

function minus(sums: ExactSums, less: ExactSums): ExactSums {
  return joined(sums, less, -1n)
}

function joined(sums: ExactSums, one: ExactSums, times: bigint): ExactSums {
  return {
    requests: sums.requests + times * one.requests,
    failedRequests: sums.failedRequests + times * one.failedRequests,
    inputTokens: sums.inputTokens + times * one.inputTokens,
    outputTokens: sums.outputTokens + times * one.outputTokens,
    cacheReadTokens: sums.cacheReadTokens + times * one.cacheReadTokens,
    cacheWriteTokens: sums.cacheWriteTokens + times * one.cacheWriteTokens,
    value: nanos(sums.value + times * one.value),
    charged: nanos(sums.charged + times * one.charged),
  }
}

function isNothing(sums: ExactSums): boolean {
  return Object.values(sums).every((sum) => sum === 0n)
}

function inMicros(
  { value: _, charged: __, ...counts }: ExactSums,
  valueMicros: bigint,
  chargedMicros: bigint,
): UsageSums {
  return { ...counts, valueMicros, chargedMicros }
}
