import type { FastifyReply, FastifyRequest } from 'fastify'
import type pg from 'pg'
import { AccountInactive, type Begin } from '../../gateway/begin.ts'
import type { Caller } from '../../identity/caller.ts'
import { isStoppedByClosure } from '../../identity/closures.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Id } from '../../kernel/ids.ts'
import { createRecentMap } from '../../kernel/recent-map.ts'
import { callerOf } from '../caller.ts'
import { admit } from './admit.ts'
import { fromLedger } from './from-ledger.ts'

type Parts = { readonly begin: Begin; readonly pool: pg.Pool; readonly time: Pick<Clock, 'nowMs'> }

/** As often as a task may be polled. */
const MOST_PER_MINUTE = 120
const MINUTE_MS = 60_000
const MOST_KNOWN = 10_000

/**
 * Admits who looks after tasks. Those of a workspace that is being closed run on and are charged, so whoever made one can read and cancel it until the
 * workspace is closed. Nobody counts the requests of an inactive account, so this process counts those.
 */
export function createAdmitToTasks({ begin, pool, time }: Parts) {
  const counts = createRecentMap<Id, { made: number; readonly endsAtMs: number }>(MOST_KNOWN)

  function count(credentialId: Id): void {
    const nowMs = time.nowMs()
    const known = counts.get(credentialId)
    const own = known !== undefined && known.endsAtMs > nowMs ? known : { made: 0, endsAtMs: nowMs + MINUTE_MS }
    if (own.made >= MOST_PER_MINUTE) {
      const retryAfterSeconds = Math.max(1, Math.ceil((own.endsAtMs - nowMs) / 1_000))
      throw new Fault('rate_limit_exceeded', {
        detail: `Rate limit: ${MOST_PER_MINUTE} requests per minute while the workspace is being closed. Retry in ${retryAfterSeconds} s.`,
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
      count(caller.credentialId)
      if (!(await fromLedger(isStoppedByClosure(pool, caller)))) throw error
      return caller
    }
  }
}
