import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import type { Begin } from '../../gateway/begin.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/fault.ts'
import { readAccountLife } from '../../ledger/balance.ts'
import { readUsage, type UsageSums } from '../../ledger/usage.ts'
import { admit } from './admit.ts'
import { fromLedger } from './from-ledger.ts'

type Parts = {
  readonly pool: pg.Pool
  readonly begin: Begin
  /** PostgreSQL's time: charges are booked by its clock. */
  readonly time: Pick<Clock, 'nowMs'>
}

const DAY_MS = 86_400_000
/** What a JavaScript date can be; an int64 beyond it is a time that nobody means. */
const LATEST_SECONDS = 8_640_000_000_000

/** GET /v1/usage: what the key has used, in days of UTC. */
export function addUsage(scope: FastifyInstance, { pool, begin, time }: Parts): void {
  scope.get<{ Querystring: Readonly<Record<string, unknown>> }>(
    '/usage',
    { config: { plainBadRequest: true } },
    async (request, reply) => {
      const caller = await admit(begin, 'usage', request, reply)
      // The second that is running belongs to a window that ends now: what was just charged is in the report.
      const nowSeconds = Math.floor(time.nowMs() / 1_000) + 1
      const start = secondsOf('start_time', request.query.start_time)
      const end = request.query.end_time === undefined ? nowSeconds : secondsOf('end_time', request.query.end_time)
      if (start > end) throw new Fault('invalid_request', { detail: 'start_time is after end_time.' })

      const { createdAtMs } = await fromLedger(readAccountLife(pool, caller.accountId))
      // Before the day on which the account was made, and after now, there is nothing to report.
      const startSeconds = Math.max(start, Math.floor(createdAtMs / DAY_MS) * (DAY_MS / 1_000))
      const endSeconds = Math.max(startSeconds, Math.min(end, nowSeconds))
      const scopeOf = { credentialId: caller.credentialId }
      const query = { scope: scopeOf, startSeconds, endSeconds }
      const { totals, buckets } = await fromLedger(readUsage(pool, query))
      return {
        scope: 'key',
        currency: 'USD',
        start_time: start,
        end_time: end,
        bucket_width: '1d',
        totals: membersOf(totals),
        buckets: buckets.map((bucket) => ({
          start_time: bucket.startSeconds,
          end_time: bucket.endSeconds,
          ...membersOf(bucket),
        })),
      }
    },
  )
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

function secondsOf(name: string, value: unknown): number {
  if (value === undefined) throw new Fault('invalid_request', { detail: `${name} is missing: give Unix seconds.` })
  const seconds = typeof value === 'string' && /^\d{1,19}$/.test(value) ? Number(value) : 0
  if (seconds <= 0 || seconds > LATEST_SECONDS)
    throw new Fault('invalid_request', { detail: `${name} must be a positive Unix timestamp in seconds.` })
  return seconds
}
