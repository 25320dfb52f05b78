import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import { z } from 'zod'
import { answer } from '../../contracts/answer.ts'
import { refusalsOfFree } from '../../contracts/refusals.ts'
import type { ContractRoute } from '../../contracts/route.ts'
import type { Begin } from '../../gateway/begin.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/fault.ts'
import { readAccountLife } from '../../ledger/balance.ts'
import { readUsage, type UsageSums } from '../../ledger/usage.ts'
import { int64 } from '../int64.ts'
import { millisecondsIn } from '../milliseconds-in.ts'
import { admit } from './admit.ts'
import { fromLedger } from './from-ledger.ts'

type Parts = {
  readonly pool: pg.Pool
  readonly begin: Begin
  /** PostgreSQL's time: charges are booked by its clock. */
  readonly time: Pick<Clock, 'nowMs'>
}

const DAY_MS = 86_400_000
const INT64_MOST = 2n ** 63n - 1n
const PARAMETERS: ReadonlySet<string> = new Set(['start_time', 'end_time'])
const NAME_LIMIT = 100

const count = z.int().meta({ format: 'int64' })
const sums = z.strictObject({
  requests: count,
  failed_requests: count,
  input_tokens: count,
  output_tokens: count,
  cache_read_tokens: count,
  cache_write_tokens: count,
  usage_value_micros_usd: count.meta({ description: 'The metered value at published prices.' }),
  charged_micros_usd: count.meta({ description: 'What was charged.' }),
})
const seconds = count.meta({ description: 'In Unix seconds.' })
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
})

const TIMESTAMP = { type: 'integer', format: 'int64', minimum: 1 }

export const USAGE_ROUTES: readonly ContractRoute[] = [
  {
    operationId: 'get_usage',
    method: 'GET',
    path: '/v1/usage',
    summary: 'What has been used, in days of UTC',
    tag: 'account',
    access: 'credential',
    parameters: [
      {
        in: 'query',
        name: 'start_time',
        description: 'Where the window starts, in Unix seconds.',
        required: true,
        schema: TIMESTAMP,
      },
      {
        in: 'query',
        name: 'end_time',
        description: 'Where it ends, in Unix seconds; now where it is left out.',
        schema: TIMESTAMP,
      },
    ],
    answers: { 200: answer('The report.', report) },
    refusals: refusalsOfFree('openai', { name: 'usage', dialectOf400: 'plain' }),
  },
]

/** GET /v1/usage: what the key has used, in days of UTC; for an access token that may read the account, what all of it has. */
export function addUsage(routes: FastifyInstance, { pool, begin, time }: Parts): void {
  routes.get<{ Querystring: Query }>('/usage', { config: { plainBadRequest: true } }, async (request, reply) => {
    const caller = await admit(begin, 'usage', request, reply)
    const nowSeconds = Math.floor(time.nowMs() / 1_000)
    const { start, end } = windowOf(request.query, nowSeconds)
    const { createdAtMs } = await fromLedger(readAccountLife(pool, caller.accountId))
    const bornSeconds = Math.floor(createdAtMs / DAY_MS) * (DAY_MS / 1_000)
    // The second that is running belongs to a window that ends now: what was just charged is in the report.
    const untilSeconds = Math.max(bornSeconds, nowSeconds + 1)
    // Before the day on which the account was made, and after now, there is nothing to report.
    const within = (seconds: bigint) => Math.min(Math.max(Number(seconds), bornSeconds), untilSeconds)
    const startSeconds = within(start)
    const endSeconds = end === undefined ? untilSeconds : within(end)
    const isOfAccount = caller.token?.mayReadAccount === true
    const scope = isOfAccount ? { accountId: caller.accountId } : { credentialId: caller.credentialId }
    const query = { scope, startSeconds, endSeconds }
    const { totals, buckets } = await fromLedger(readUsage(pool, query))
    const lastSeconds = end === undefined ? nowSeconds : endSeconds
    return {
      scope: isOfAccount ? 'account' : 'key',
      currency: 'USD',
      start_time: int64(start),
      end_time: int64(end ?? BigInt(nowSeconds)),
      bucket_width: '1d',
      totals: membersOf(totals),
      buckets: buckets.map((bucket) => ({
        start_time: bucket.startSeconds,
        end_time: Math.min(bucket.endSeconds, lastSeconds),
        ...membersOf(bucket),
      })),
    }
  })
}

function membersOf(sums: UsageSums) {
  return {
    requests: Number(sums.requests),
    failed_requests: Number(sums.failedRequests),
    input_tokens: Number(sums.inputTokens),
    output_tokens: Number(sums.outputTokens),
    cache_read_tokens: Number(sums.cacheReadTokens),
    cache_write_tokens: Number(sums.cacheWriteTokens),
    usage_value_micros_usd: Number(sums.valueMicros),
    charged_micros_usd: Number(sums.chargedMicros),
  }
}

type Query = Readonly<Record<string, unknown>>

/** What is asked for; without an end where it is now. */
function windowOf(query: Query, nowSeconds: number): { readonly start: bigint; readonly end: bigint | undefined } {
  const unknown = Object.keys(query).find((name) => !PARAMETERS.has(name))
  if (unknown !== undefined)
    throw invalid(`Unknown parameter "${unknown.slice(0, NAME_LIMIT)}". This endpoint takes start_time and end_time.`)
  const start = secondsOf('start_time', query.start_time)
  const end = query.end_time === undefined ? undefined : secondsOf('end_time', query.end_time)
  if (start > (end ?? BigInt(nowSeconds)))
    throw invalid(millisecondsIn(query.start_time) ?? `start_time is after ${end === undefined ? 'now' : 'end_time'}.`)
  return { start, end }
}

function secondsOf(name: string, value: unknown): bigint {
  if (value === undefined) throw invalid(`${name} is required: a Unix timestamp in seconds.`)
  const seconds = typeof value === 'string' && /^\d{1,19}$/.test(value) ? BigInt(value) : 0n
  if (seconds <= 0n || seconds > INT64_MOST) throw invalid(`${name} must be a positive Unix timestamp in seconds.`)
  return seconds
}

function invalid(detail: string): Fault {
  return new Fault('invalid_request', { detail })
}
