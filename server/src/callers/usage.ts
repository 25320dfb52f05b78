import type pg from 'pg'
import { z } from 'zod'
import { fromLedger } from '../api/from-ledger.ts'
import { invalidRequest } from '../kernel/fault.ts'
import { type Id, UUID } from '../kernel/ids.ts'
import { formatUsd } from '../kernel/money.ts'
import { readAccountLife } from '../ledger/balance.ts'
import { type ExactSums, readUsage, type UsageGroup, type UsageReport, type UsageSums } from '../ledger/usage.ts'
import type { GroupBy, UsageFilter } from '../ledger/usage-query.ts'
import { int64 } from './int64.ts'
import { millisecondsIn } from './milliseconds-in.ts'
import { type CallerRoute, forKey } from './route.ts'

const DAY_MS = 86_400_000
const INT64_MOST = 2n ** 63n - 1n
const FILTERS = ['operation', 'model', 'key', 'tag', 'end_user'] as const
const PARAMETERS: readonly string[] = ['start_time', 'end_time', 'bucket', 'group_by', ...FILTERS]
const NAME_LIMIT = 100
const VALUE_LIMIT = 200
const TAG = /^([a-z][a-z0-9_.-]{0,31})=(.+)$/s
export const GROUP_BY = /^(?:key|operation|model|end_user|tag:([a-z][a-z0-9_.-]{0,31}))$/

const count = z.int().meta({ format: 'int64' })
/** What is counted of usage, beside money. */
export const usageCounts = {
  requests: count,
  failed_requests: count,
  input_tokens: count,
  output_tokens: count,
  cache_read_tokens: count,
  cache_write_tokens: count,
}
const sums = z.strictObject({
  ...usageCounts,
  usage_value_micros_usd: count.meta({ description: 'The metered value at published prices.' }),
  charged_micros_usd: count.meta({ description: 'What was charged.' }),
})
const seconds = count.meta({ description: 'In Unix seconds.' })
const exact = z.strictObject({
  ...usageCounts,
  usage_value_usd: z.string().meta({ description: 'The metered value at published prices, exact, in USD.' }),
  charged_usd: z.string().meta({ description: 'What was charged, exact, in USD.' }),
})
const group = z.strictObject({
  kind: z.enum(['group', 'other', 'none']).meta({
    description: 'A group; the smaller ones together; or what has none of what it is grouped by.',
  }),
  value: z.string().nullable().meta({ description: 'The key, operation, model, end user or value of the tag.' }),
  label: z.string().nullable().meta({ description: 'Of an end user: short, for people.' }),
  totals: exact,
  buckets: z
    .array(exact.extend({ start_time: seconds, end_time: seconds }))
    .meta({ description: 'Those in which it used anything, in the order of time.' }),
})
const report = z.strictObject({
  scope: z.string().meta({ description: 'What the credential lets the report be about, such as key or account.' }),
  currency: z.literal('USD'),
  start_time: seconds,
  end_time: seconds,
  bucket_width: z.string(),
  totals: sums,
  buckets: z
    .array(sums.extend({ start_time: seconds, end_time: seconds }))
    .meta({ description: 'In the order of time.' }),
  group_by: z.string().optional().meta({ description: 'Where it was asked for, as are the groups.' }),
  groups: z.array(group).optional().meta({ description: 'The largest 50 first. They add up to the totals, exactly.' }),
  other_groups: z
    .int()
    .optional()
    .meta({ description: 'How many are told as one; left out where they are too many to count.' }),
})

const timestamp = z.int().min(1).meta({ format: 'int64' })
const filter = z.string().min(1).max(VALUE_LIMIT).optional()
const described = z.object({
  start_time: timestamp.meta({ description: 'Where the window starts, in Unix seconds.' }),
  end_time: timestamp.optional().meta({ description: 'Where it ends, in Unix seconds; now where it is left out.' }),
  bucket: z.enum(['day', 'hour']).default('day').meta({ description: 'How long a bucket is.' }),
  group_by: z
    .string()
    .regex(GROUP_BY)
    .optional()
    .meta({ description: 'What usage is told apart by: key, operation, model, end_user, or tag:<name>.' }),
  operation: filter.meta({
    description: 'Calls of this operation alone. Calls from before there was attribution match no operation.',
  }),
  model: filter.meta({ description: 'Calls of this model alone, by the name that was asked for.' }),
  key: filter.meta({ description: 'Calls of this key alone, by its id.' }),
  tag: filter.meta({
    description: 'Calls with this tag alone: name=value. It can not be combined with another tag or with end users.',
  }),
  end_user: filter.meta({
    description: 'Calls for this end user alone, by the id that a report grouped by end_user has.',
  }),
})

/** What the key has used, in days of UTC; for an access token that may read the account, what all of it has. */
export const USAGE_ROUTES: readonly CallerRoute[] = [
  forKey({
    operationId: 'get_usage',
    method: 'GET',
    path: '/v1/usage',
    summary: 'What has been used, in days of UTC',
    tag: 'account',
    counts: 'usage',
    describedQuery: described,
    plainBadRequest: true,
    refusesAs: 'usage',
    answer: { description: 'The report.', body: report },
    async run({ pool, time }, { caller, query }) {
      const nowSeconds = Math.floor(time.nowMs() / 1_000)
      const { start, end } = windowOf(query, nowSeconds)
      const view = usageViewOf(query)
      const within = await fromLedger(lifeWithin(pool, caller.accountId, nowSeconds))
      const [startSeconds, endSeconds] = [within(Number(start)), within(Number(end ?? nowSeconds + 1))]
      const isOfAccount = caller.token?.mayReadAccount === true
      const scope = isOfAccount ? { accountId: caller.accountId } : { credentialId: caller.credentialId }
      const window = { scope, startSeconds, endSeconds, nowSeconds, ...view }
      const report = await fromLedger(readUsage(pool, window))
      const lastSeconds = end === undefined ? nowSeconds : endSeconds
      return {
        body: {
          scope: isOfAccount ? 'account' : 'key',
          currency: 'USD' as const,
          start_time: int64(start),
          end_time: int64(end ?? BigInt(nowSeconds)),
          bucket_width: view.bucket === 'hour' ? '1h' : '1d',
          totals: membersOf(report.totals),
          buckets: report.buckets.map((bucket) => ({ ...timesOf(bucket, lastSeconds), ...membersOf(bucket) })),
          ...groupsOf(query.group_by, report, lastSeconds),
        },
      }
    },
  }),
]

/**
 * Brings a second into the life of an account: before the day on which it was made, and after now, there is nothing to report. The second that is
 * running belongs to a window that ends now, so that what was just charged is in the report.
 */
export async function lifeWithin(
  pool: pg.Pool,
  accountId: Id,
  nowSeconds: number,
): Promise<(seconds: number) => number> {
  const { createdAtMs } = await readAccountLife(pool, accountId)
  const bornSeconds = Math.floor(createdAtMs / DAY_MS) * (DAY_MS / 1_000)
  return (seconds) => Math.min(Math.max(seconds, bornSeconds), Math.max(bornSeconds, nowSeconds + 1))
}

/** The second that is running is not told. */
function timesOf({ startSeconds, endSeconds }: { startSeconds: number; endSeconds: number }, lastSeconds: number) {
  return { start_time: startSeconds, end_time: Math.min(endSeconds, lastSeconds) }
}

function groupsOf(groupBy: unknown, { groups, otherGroups }: UsageReport, lastSeconds: number) {
  if (groups === undefined) return {}
  const told = ({ kind, value, label, totals, buckets }: UsageGroup) => ({
    kind,
    value,
    label,
    totals: exactMembersOf(totals),
    buckets: buckets.map((bucket) => ({ ...timesOf(bucket, lastSeconds), ...exactMembersOf(bucket) })),
  })
  return { group_by: String(groupBy), groups: groups.map(told), other_groups: otherGroups }
}

function exactMembersOf(sums: ExactSums) {
  return {
    ...countsOf(sums),
    usage_value_usd: formatUsd(sums.value),
    charged_usd: formatUsd(sums.charged),
  }
}

export function countsOf(sums: Omit<ExactSums, 'value' | 'charged'>) {
  return {
    requests: Number(sums.requests),
    failed_requests: Number(sums.failedRequests),
    input_tokens: Number(sums.inputTokens),
    output_tokens: Number(sums.outputTokens),
    cache_read_tokens: Number(sums.cacheReadTokens),
    cache_write_tokens: Number(sums.cacheWriteTokens),
  }
}

function membersOf(sums: UsageSums) {
  return {
    ...countsOf(sums),
    usage_value_micros_usd: Number(sums.valueMicros),
    charged_micros_usd: Number(sums.chargedMicros),
  }
}

type Query = Readonly<Record<string, unknown>>

/** What is asked for; without an end where it is now. */
function windowOf(query: Query, nowSeconds: number): { readonly start: bigint; readonly end: bigint | undefined } {
  const unknown = Object.keys(query).find((name) => !PARAMETERS.includes(name))
  if (unknown !== undefined)
    throw invalidRequest(
      `Unknown parameter "${unknown.slice(0, NAME_LIMIT)}". This endpoint takes ${PARAMETERS.join(', ')}.`,
    )
  const start = secondsOf('start_time', query.start_time)
  const end = query.end_time === undefined ? undefined : secondsOf('end_time', query.end_time)
  if (start > (end ?? BigInt(nowSeconds)))
    throw invalidRequest(
      millisecondsIn(query.start_time) ?? `start_time is after ${end === undefined ? 'now' : 'end_time'}.`,
    )
  return { start, end }
}

export type UsageView = { readonly bucket: 'day' | 'hour'; readonly groupBy?: GroupBy; readonly filter: UsageFilter }

/** How it is told, and of what. */
export function usageViewOf(query: Query): UsageView {
  const { bucket = 'day' } = query
  if (bucket !== 'day' && bucket !== 'hour') throw invalidRequest('bucket must be day or hour.')
  const filter = filterOf(query)
  const groupBy = groupByOf(query.group_by)
  const subjects = [
    ...(filter.tag === undefined ? [] : [`tag:${filter.tag.name}`]),
    ...(filter.endUserId === undefined ? [] : ['end_user']),
    ...(groupBy === 'end_user' ? [groupBy] : []),
    ...(typeof groupBy === 'object' ? [`tag:${groupBy.tag}`] : []),
  ]
  if (new Set(subjects).size > 1)
    throw invalidRequest(
      `A report can be about one tag or about end users, not about several: ${subjects.join(' and ')}.`,
    )
  return { bucket, filter, ...(groupBy !== undefined && { groupBy }) }
}

function groupByOf(value: unknown): GroupBy | undefined {
  if (value === undefined) return undefined
  const [all, tag] = (typeof value === 'string' && GROUP_BY.exec(value)) || []
  if (tag !== undefined) return { tag }
  if (all === 'key' || all === 'operation' || all === 'model' || all === 'end_user') return all
  throw invalidRequest('group_by must be key, operation, model, end_user or tag:<name>.')
}

function filterOf(query: Query): UsageFilter {
  const {
    operation,
    model,
    key,
    tag,
    end_user: endUser,
  } = Object.fromEntries(FILTERS.map((name) => [name, textOf(name, query[name])]))
  const [, tagName, tagValue] = (tag !== undefined && TAG.exec(tag)) || []
  if (tag !== undefined && (tagName === undefined || tagValue === undefined))
    throw invalidRequest('tag must be written name=value.')
  for (const [name, id] of Object.entries({ key, end_user: endUser }))
    if (id !== undefined && !UUID.test(id)) throw invalidRequest(`${name} must be an id, as a report has it.`)
  return {
    ...(operation !== undefined && { operation }),
    ...(model !== undefined && { model }),
    ...(key !== undefined && { credentialId: key }),
    ...(endUser !== undefined && { endUserId: endUser }),
    ...(tagName !== undefined && tagValue !== undefined && { tag: { name: tagName, value: tagValue } }),
  }
}

function textOf(name: string, value: unknown): string | undefined {
  if (value === undefined) return undefined
  if (typeof value === 'string' && value !== '' && value.length <= VALUE_LIMIT && !value.includes('\0')) return value
  throw invalidRequest(`${name} must be one text of 1 to ${VALUE_LIMIT} characters.`)
}

function secondsOf(name: string, value: unknown): bigint {
  if (value === undefined) throw invalidRequest(`${name} is required: a Unix timestamp in seconds.`)
  const seconds = typeof value === 'string' && /^\d{1,19}$/.test(value) ? BigInt(value) : 0n
  if (seconds <= 0n || seconds > INT64_MOST)
    throw invalidRequest(`${name} must be a positive Unix timestamp in seconds.`)
  return seconds
}
