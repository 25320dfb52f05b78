import type pg from 'pg'
import { revokeGrantsWithin } from '../grants/grants.ts'
import type { Id } from '../kernel/ids.ts'
import { type By, record } from '../storage/audit.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { endSessionsWithin } from './sessions.ts'

/**
 * An operator blocks a person: they can't sign in, and their sessions and grants end, with all tokens of those. API keys are their workspace's, and go on. Grants
 * stay ended when the person is unblocked.
 */

export type Blocked = { readonly sessions: number; readonly grants: number }

/** Null where the person is blocked already. */
export function blockPerson(pool: pg.Pool, by: By, personId: Id, reason: string): Promise<Blocked | null> {
  return inTransaction(pool, async (query) => {
    // Signing in and giving a grant read this row under a lock that waits for ours, or come before it and end here.
    if (!(await mark(query, personId, true))) return null
    const sessions = await endSessionsWithin(query, personId)
    const grants = (await revokeGrantsWithin(query, { personId })).length
    await record(query, by, {
      ...{ action: 'person.blocked', subject: personId, before: { isBlocked: false } },
      after: { isBlocked: true, reason, sessionsEnded: sessions, grantsRevoked: grants },
    })
    return { sessions, grants }
  })
}

/** False where the person is not blocked. */
export function unblockPerson(pool: pg.Pool, by: By, personId: Id, reason: string): Promise<boolean> {
  return inTransaction(pool, async (query) => {
    if (!(await mark(query, personId, false))) return false
    await record(query, by, {
      ...{ action: 'person.unblocked', subject: personId, before: { isBlocked: true } },
      after: { isBlocked: false, reason },
    })
    return true
  })
}

async function mark(query: Query, personId: Id, isBlocked: boolean): Promise<boolean> {
  const { rowCount } = await query(
    `update people set blocked_at = case when $2 then clock_timestamp() end where id = $1 and (blocked_at is null) = $2`,
    [personId, isBlocked],
  )
  return rowCount === 1
}
