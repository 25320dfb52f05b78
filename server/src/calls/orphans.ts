import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, type Nanos, nanos } from '../kernel/money.ts'
import { type By, record, SERVICE } from '../storage/audit.ts'
import { inPortions } from '../storage/in-portions.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import type { Log } from '../telemetry/log.ts'

type Parts = { readonly pool: pg.Pool; readonly log: Log }

const AT_ONCE = 200

export type Sweep = Parts & {
  /** The process that sweeps. It holds a lease itself, so that nobody is swept after an outage before all could renew theirs. */
  readonly ownerId: Id
  readonly graceSeconds: number
}

/** Marks the calls of dead processes as unsettled, each once however many sweep. How many this one found. */
export async function sweepOrphans({ pool, log, ownerId, graceSeconds }: Sweep): Promise<number> {
  return inPortions(AT_ONCE, async (most) => {
    const { rows } = await pool.query<{ id: Id; owner_id: Id }>(
      'select id, owner_id from sweep_orphans(sweeper => $1, grace_seconds => $2, most => $3)',
      [ownerId, graceSeconds, most],
    )
    for (const { id, owner_id } of rows)
      log.warn('a call is unsettled: its process is gone', { request_id: id, owner_id })
    return rows.length
  })
}

export type Overdue = Parts & { readonly lost?: (amount: Nanos) => void; readonly by?: By }

/** Voids what nobody resolved in time, at the operator's loss. How many that were. */
export function resolveOverdue(parts: Overdue, afterSeconds: number): Promise<number> {
  const sql = 'select id, account_id, overrun from resolve_overdue(seconds => $1, most => $2)'
  return voidAtOurLoss(parts, afterSeconds, sql, 'a call was never resolved: it is voided at our loss')
}

/** Voids by a statement that takes the age in seconds and how many at the most. How many that were. */
export async function voidAtOurLoss(
  { pool, log, lost = () => {}, by = SERVICE }: Overdue,
  afterSeconds: number,
  sql: string,
  told: string,
): Promise<number> {
  return inPortions(AT_ONCE, async (most) => {
    const voided = await inTransaction(pool, async (query) => {
      const { rows } = await query(sql, [afterSeconds, most])
      const calls = voidedRows.parse(rows)
      await recordVoided(query, by, calls)
      return calls
    })
    for (const { id, overrun } of voided) {
      lost(overrun)
      log.error(told, { request_id: id, amount: formatUsd(overrun) })
    }
    return voided.length
  })
}

type Voided = { readonly id: Id; readonly accountId: Id; readonly overrun: Nanos }

const voidedRows = z.array(
  z
    .object({ id: z.string(), account_id: z.string(), overrun: z.bigint().transform(nanos) })
    .transform(({ account_id: accountId, ...row }): Voided => ({ ...row, accountId })),
)

/** One row of the audit log for each account: an outage may void thousands of calls, and the ledger has every one of them. */
async function recordVoided(query: Query, by: By, voided: readonly Voided[]): Promise<void> {
  for (const [accountId, calls] of Map.groupBy(voided, (call) => call.accountId)) {
    const lost = nanos(calls.reduce((sum, { overrun }) => sum + overrun, 0n))
    const after = { state: 'voided', overrun: formatUsd(lost), calls: calls.map(({ id }) => id) }
    await record(query, by, {
      action: 'calls.voided',
      of: accountId,
      subject: accountId,
      before: { state: 'unsettled' },
      after,
    })
  }
}

export type Resolution = { readonly outcome: string; readonly charged: Nanos; readonly overrun: Nanos }

/** Ends an unsettled call by what an operator knows of it; null voids. Undefined where the call is not unsettled. */
export function resolveCall(pool: pg.Pool, id: Id, amount: Nanos | null): Promise<Resolution | undefined> {
  return resolveWithin((text, values = []) => pool.query(text, [...values]), id, amount)
}

/** The same in a transaction that has more to do. */
export async function resolveWithin(query: Query, id: Id, amount: Nanos | null): Promise<Resolution | undefined> {
  const { rows } = await query('select outcome, charged, overrun from resolve_call(call_id => $1, amount => $2)', [
    id,
    amount,
  ])
  return resolutions.parse(rows)[0]
}

/** Whose money an open call holds. */
export async function accountOfCall(query: Query, id: Id): Promise<Id | undefined> {
  const { rows } = await query('select account_id from holds where id = $1', [id])
  return holders.parse(rows)[0]?.account_id
}

const holders = z.array(z.object({ account_id: z.string() }))
const resolutions = z.array(
  z.object({ outcome: z.string(), charged: z.bigint().transform(nanos), overrun: z.bigint().transform(nanos) }),
)
