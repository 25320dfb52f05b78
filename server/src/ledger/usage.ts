import type pg from 'pg'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { microsByBucket, nanos, wholeMicros } from '../kernel/money.ts'

/** What a credential used, or all credentials of an account, by UTC days. */
export type UsageQuery = {
  readonly scope: { readonly credentialId: Id } | { readonly accountId: Id }
  /** Whole Unix seconds, the first of which belongs to the window. */
  readonly startSeconds: number
  /** Whole Unix seconds, the first of which is past the window. */
  readonly endSeconds: number
}

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

/** A UTC day, or what the window leaves of it. */
export type UsageBucket = UsageSums & { readonly startSeconds: number; readonly endSeconds: number }

export type UsageReport = { readonly totals: UsageSums; readonly buckets: readonly UsageBucket[] }

const HOUR_SECONDS = 3_600
const DAY_SECONDS = 86_400
const BUCKETS_MAX = 1_100

/**
 * Charges stand by the day of their id and are asked for by the time of their end, so the days are bounded that are looked
 * at: all of them, a thousand and more, would take longer to plan than the report may take.
 *
 * An id is made when its call arrives. From then, a call runs for minutes and a task for hours, and one that nobody runs
 * any more is voided after a day. A week and a day leaves the upkeep that voids it a week in which to fail.
 */
const IDS_BEFORE_SECONDS = 8 * DAY_SECONDS
/** A call begins only where its id has a partition, and those are made for seven days after today. */
const IDS_AFTER_SECONDS = 8 * DAY_SECONDS

/** Buckets and totals come from one statement, hence from one state of the ledger, and add up to the micro. */
export async function readUsage(pool: pg.Pool, query: UsageQuery): Promise<UsageReport> {
  const windows = dayWindows(query)
  const { rows } = await pool.query<DayRow>(usageStatement(query))
  const rowOf = new Map(rows.map((row) => [row.day, row]))
  const days = windows.map(({ day }) => rowOf.get(day) ?? { day, ...NOTHING })
  const valueMicros = microsByBucket(days.map(({ value }) => nanos(value)))
  const chargedMicros = microsByBucket(days.map(({ charged }) => nanos(charged)))
  return {
    totals: {
      ...sumOf(days),
      valueMicros: wholeMicros(days.reduce((sum, { value }) => sum + value, 0n)),
      chargedMicros: wholeMicros(days.reduce((sum, { charged }) => sum + charged, 0n)),
    },
    buckets: windows.map(({ startSeconds, endSeconds }, at) => ({
      startSeconds,
      endSeconds,
      ...sumOf(days.slice(at, at + 1)),
      valueMicros: valueMicros[at] ?? 0n,
      chargedMicros: chargedMicros[at] ?? 0n,
    })),
  }
}

type DayWindow = { readonly day: number; readonly startSeconds: number; readonly endSeconds: number }

function dayWindows({ startSeconds, endSeconds }: UsageQuery): readonly DayWindow[] {
  if (startSeconds > endSeconds)
    throw new Fault('invalid_request', { detail: 'start_time is after end_time. Swap them.' })
  if (startSeconds === endSeconds) return []
  const firstDay = floorTo(startSeconds, DAY_SECONDS)
  const buckets = Math.ceil((endSeconds - firstDay) / DAY_SECONDS)
  if (buckets > BUCKETS_MAX)
    throw new Fault('invalid_request', {
      detail: `The time window is too long: the limit is ${BUCKETS_MAX} days. Ask for a shorter one.`,
    })
  return Array.from({ length: buckets }, (_, at) => {
    const day = firstDay + at * DAY_SECONDS
    return {
      day,
      startSeconds: Math.max(day, startSeconds),
      endSeconds: Math.min(day + DAY_SECONDS, endSeconds),
    }
  })
}

type DayRow = Counts & { readonly day: number; readonly value: bigint; readonly charged: bigint }

const NOTHING = {
  requests: 0n,
  failedRequests: 0n,
  inputTokens: 0n,
  outputTokens: 0n,
  cacheReadTokens: 0n,
  cacheWriteTokens: 0n,
  value: 0n,
  charged: 0n,
}

function sumOf(days: readonly Counts[]): Counts {
  const sum = (pick: (day: Counts) => bigint) => days.reduce((all, day) => all + pick(day), 0n)
  return {
    requests: sum((day) => day.requests),
    failedRequests: sum((day) => day.failedRequests),
    inputTokens: sum((day) => day.inputTokens),
    outputTokens: sum((day) => day.outputTokens),
    cacheReadTokens: sum((day) => day.cacheReadTokens),
    cacheWriteTokens: sum((day) => day.cacheWriteTokens),
  }
}

const DAY = (time: string) => `date_bin('1 day', ${time}, 'epoch'::timestamptz)`

type Span = { readonly from: number; readonly to: number }

/** The hours that lie in the window as a whole, and the parts of hours at its ends, of which there are two at the most. */
function splitByHours({ startSeconds, endSeconds }: UsageQuery): { readonly whole: Span; readonly cuts: Span[] } {
  const whole = {
    from: floorTo(startSeconds + HOUR_SECONDS - 1, HOUR_SECONDS),
    to: floorTo(endSeconds, HOUR_SECONDS),
  }
  const cuts =
    whole.from > whole.to
      ? [{ from: startSeconds, to: endSeconds }]
      : [
          { from: startSeconds, to: whole.from },
          { from: whole.to, to: endSeconds },
        ]
  return { whole, cuts: cuts.filter(({ from, to }) => from < to) }
}

function floorTo(seconds: number, width: number): number {
  return Math.floor(seconds / width) * width
}

/**
 * The statement of a report. It has no name, so that it is planned for its values: only then are the charges of other days
 * neither locked nor looked at.
 */
export function usageStatement(query: UsageQuery): { readonly text: string; readonly values: (string | number)[] } {
  const { whole, cuts } = splitByHours(query)
  const [column, owner] =
    'credentialId' in query.scope ? ['credential_id', query.scope.credentialId] : ['account_id', query.scope.accountId]
  const values: (string | number)[] = [owner, whole.from, whole.to]
  const parts = [
    // Added up here already: a year of many keys has tens of thousands of hours, and some hundred days.
    `select ${DAY('hour')} as at, sum(requests) as requests, sum(failed_requests) as failed_requests,
       sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,
       sum(cache_read_tokens) as cache_read_tokens, sum(cache_write_tokens) as cache_write_tokens,
       sum(value) as value, sum(charged) as charged
     from usage_hours where ${column} = $1 and hour >= to_timestamp($2) and hour < to_timestamp($3) group by 1`,
  ]
  for (const { from, to } of cuts) {
    const first = values.push(floorTo(from, HOUR_SECONDS), from, to) - 2
    parts.push(cutHour(column, `$${first}`, `$${first + 1}`, `$${first + 2}`))
  }
  return { text: sumByDay(parts), values }
}

function sumByDay(parts: readonly string[]): string {
  const day = DAY('at')
  return `
    select extract(epoch from ${day})::float8 as day,
      sum(requests)::bigint as "requests", sum(failed_requests)::bigint as "failedRequests",
      sum(input_tokens)::bigint as "inputTokens", sum(output_tokens)::bigint as "outputTokens",
      sum(cache_read_tokens)::bigint as "cacheReadTokens", sum(cache_write_tokens)::bigint as "cacheWriteTokens",
      sum(value)::bigint as "value", sum(charged)::bigint as "charged"
    from (${parts.join(' union all ')}) used
    group by ${day}`
}

/** What was booked in a part of an hour. Only credentials with a row for that hour have anything in it. */
function cutHour(column: string, hour: string, from: string, to: string): string {
  const credentials = `array(select credential_id from usage_hours where ${column} = $1 and hour = to_timestamp(${hour}))`
  return `
    select ended_at, 1, failed::integer, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, amount
    from charges
    where credential_id = any (${credentials}) and executed
      and ended_at >= to_timestamp(${from}) and ended_at < to_timestamp(${to})
      and id >= first_id_at(to_timestamp(greatest(0, ${from} - ${IDS_BEFORE_SECONDS})))
      and id < first_id_at(to_timestamp(${to} + ${IDS_AFTER_SECONDS}))
    union all
    select entered_at, 0, 0, 0, 0, 0, 0, 0, charged
    from entries
    where credential_id = any (${credentials}) and entered_at >= to_timestamp(${from}) and entered_at < to_timestamp(${to})`
}
