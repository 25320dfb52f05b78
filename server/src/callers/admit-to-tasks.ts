import { fromLedger } from '../api/from-ledger.ts'
import { AccountInactive, type Begin } from '../gateway/begin.ts'
import type { Caller } from '../identity/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { createMinuteCounts } from '../kernel/minute-counts.ts'
import type { Transactions } from '../storage/transaction.ts'
import { findStop } from '../workspaces/stops.ts'
import { type Admission, admit } from './admit.ts'

type Parts = { readonly begin: Begin; readonly pool: Transactions; readonly time: Pick<Clock, 'nowMs'> }

/** As often as a task may be polled. */
const MOST_PER_MINUTE = 120
const MOST_KNOWN = 10_000

/**
 * Admits who looks after tasks. Those of a workspace that is being closed run on and are charged, so whoever made one can read and cancel it until the
 * workspace is closed, with a credential that is active: BEGIN says of an inactive account nothing else. Nobody counts the requests of an inactive account
 * either, so this process counts those of each key.
 */
export function createAdmitToTasks({ begin, pool, time }: Parts) {
  const take = createMinuteCounts<Id>(MOST_KNOWN)

  function count({ credentialId, limits }: Caller): void {
    const most = Math.min(limits.requestsPerMinute, MOST_PER_MINUTE)
    const retryAfterSeconds = take(credentialId, most, time.nowMs())
    if (retryAfterSeconds === undefined) return
    throw new Fault('rate_limit_exceeded', {
      detail: `Rate limit: ${most} requests per minute while the account is inactive. Retry in ${retryAfterSeconds} s.`,
      retryAfterSeconds,
    })
  }

  return async (request: Admission): Promise<Readonly<Record<string, string>>> => {
    try {
      return await admit(begin, request, 'tasks')
    } catch (error) {
      if (!(error instanceof AccountInactive)) throw error
      const { caller } = request
      // Counted before it is known why the account is inactive, so that the look-up has a bound too.
      count(caller)
      const stop = await fromLedger(findStop(pool, caller))
      if (stop === null) throw error
      if (!stop.isCredentialActive) throw new Fault('invalid_credential')
      return {}
    }
  }
}
