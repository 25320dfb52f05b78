import type { FastifyReply, FastifyRequest } from 'fastify'
import { AccountInactive, type Begin } from '../../gateway/begin.ts'
import type { Caller } from '../../identity/caller.ts'
import { findStop } from '../../identity/closures.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Id } from '../../kernel/ids.ts'
import { createRecentMap } from '../../kernel/recent-map.ts'
import type { Transactions } from '../../storage/transaction.ts'
import { callerOf } from '../caller.ts'
import { admit } from './admit.ts'
import { fromLedger } from './from-ledger.ts'

type Parts = { readonly begin: Begin; readonly pool: Transactions; readonly time: Pick<Clock, 'nowMs'> }

/** As often as a task may be polled. */
const MOST_PER_MINUTE = 120
const MINUTE_MS = 60_000
const MOST_KNOWN = 10_000

/**
 * Admits who looks after tasks. Those of a workspace that is being closed run on and are charged, so whoever made one can read and cancel it until the
 * workspace is closed, with a credential that is active: BEGIN says of an inactive account nothing else. Nobody counts the requests of an inactive account
 * either, so this process counts those of each key.
 */
export function createAdmitToTasks({ begin, pool, time }: Parts) {
  const counts = createRecentMap<Id, { made: number; readonly endsAtMs: number }>(MOST_KNOWN)

  function count({ credentialId, limits }: Caller): void {
    const most = Math.min(limits.requestsPerMinute, MOST_PER_MINUTE)
    const nowMs = time.nowMs()
    const known = counts.get(credentialId)
    const own = known !== undefined && known.endsAtMs > nowMs ? known : { made: 0, endsAtMs: nowMs + MINUTE_MS }
    if (own.made >= most) {
      const retryAfterSeconds = Math.max(1, Math.ceil((own.endsAtMs - nowMs) / 1_000))
      throw new Fault('rate_limit_exceeded', {
        detail: `Rate limit: ${most} requests per minute while the account is inactive. Retry in ${retryAfterSeconds} s.`,
        retryAfterSeconds,
      })
    }
    own.made += 1
    counts.set(credentialId, own)
  }

  return async (request: FastifyRequest, reply: FastifyReply): Promise<Caller> => {
    try {
      return await admit(begin, 'tasks', request, reply)
    } catch (error) {
      if (!(error instanceof AccountInactive)) throw error
      const caller = callerOf(request)
      // Counted before it is known why the account is inactive, so that the look-up has a bound too.
      count(caller)
      const stop = await fromLedger(findStop(pool, caller))
      if (stop === null) throw error
      if (!stop.isCredentialActive) throw new Fault('invalid_credential')
      return caller
    }
  }
}
