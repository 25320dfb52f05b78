import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, type Nanos, nanos } from '../kernel/money.ts'
import { type By, type Change, record } from '../storage/audit.ts'
import { inTransaction } from '../storage/transaction.ts'

/**
 * The verbs that take money back. Each happens once for its id, and answers the same when it is asked again. Where it is said who
 * asks, the audit log has it with its entry, or neither is there.
 */

export type PaymentReversal = {
  readonly reversalId: Id
  readonly paymentId: Id
  readonly kind: 'payment_reversal' | 'dispute'
  readonly most: Nanos
}

/** Takes a payment back, never more than is left of it. What the account no longer has becomes debt. */
export async function reversePayment(pool: pg.Pool, reversal: PaymentReversal, by?: By): Promise<Nanos> {
  const { reversalId, paymentId, most, kind } = reversal
  const sql = 'select reverse_payment(reversal_id => $1, payment_id => $2, most => $3, reversal_kind => $4) as amount'
  const action = kind === 'dispute' ? 'payment.disputed' : 'payment.reversed'
  return amountOf(pool, { sql, values: [reversalId, paymentId, most, kind], action }, by)
}

/** Credits what a dispute took, once for each dispute. */
export async function winDispute(pool: pg.Pool, entryId: Id, disputeId: Id, by?: By): Promise<Nanos> {
  const sql = 'select win_dispute(entry_id => $1, dispute_id => $2) as amount'
  return amountOf(pool, { sql, values: [entryId, disputeId], action: 'dispute.won' }, by)
}

/** Gives a charge back, never more than was charged; to the allowances that it was counted against as well. */
export async function reverseCharge(pool: pg.Pool, reversalId: Id, chargeId: Id, most: Nanos, by?: By): Promise<Nanos> {
  const sql = 'select reverse_charge(reversal_id => $1, charge_id => $2, most => $3) as amount'
  return amountOf(pool, { sql, values: [reversalId, chargeId, most], action: 'charge.reversed' }, by)
}

type Verb = {
  readonly sql: string
  /** Its own id first, then that of what it corrects. */
  readonly values: readonly [Id, Id, ...unknown[]]
  readonly action: Change['action']
}

const amounts = z.tuple([z.object({ amount: z.bigint() })])

async function amountOf(pool: pg.Pool, { sql, values, action }: Verb, by: By | undefined): Promise<Nanos> {
  if (by === undefined) return nanos(amounts.parse((await pool.query(sql, [...values])).rows)[0].amount)
  const [subject, corrects] = values
  return inTransaction(pool, async (query) => {
    const amount = nanos(amounts.parse((await query(sql, values)).rows)[0].amount)
    // Of a verb that is repeated the entry was made by another transaction.
    const { rows } = await query('select account_id from entries where id = $1 and xmin = pg_current_xact_id()::xid', [
      subject,
    ])
    for (const { account_id: of } of made.parse(rows))
      await record(query, by, { action, of, subject, before: null, after: { usd: formatUsd(amount), corrects } })
    return amount
  })
}

const made = z.array(z.object({ account_id: z.string() }))
