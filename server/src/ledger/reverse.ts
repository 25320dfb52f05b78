import type pg from 'pg'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, nanos } from '../kernel/money.ts'

/** The verbs that take money back. Each happens once for its id, and answers the same when it is asked again. */

export type PaymentReversal = {
  readonly reversalId: Id
  readonly paymentId: Id
  readonly kind: 'payment_reversal' | 'dispute'
  readonly most: Nanos
}

/** Takes a payment back, never more than is left of it. What the account no longer has becomes debt. */
export async function reversePayment(pool: pg.Pool, reversal: PaymentReversal): Promise<Nanos> {
  const { reversalId, paymentId, most, kind } = reversal
  return amountOf(
    pool,
    'select reverse_payment(reversal_id => $1, payment_id => $2, most => $3, reversal_kind => $4) as amount',
    [reversalId, paymentId, most, kind],
  )
}

/** Credits what a dispute took, once for each dispute. */
export async function winDispute(pool: pg.Pool, entryId: Id, disputeId: Id): Promise<Nanos> {
  return amountOf(pool, 'select win_dispute(entry_id => $1, dispute_id => $2) as amount', [entryId, disputeId])
}

/** Gives a charge back, never more than was charged; to the allowances that it was counted against as well. */
export async function reverseCharge(pool: pg.Pool, reversalId: Id, chargeId: Id, most: Nanos): Promise<Nanos> {
  return amountOf(pool, 'select reverse_charge(reversal_id => $1, charge_id => $2, most => $3) as amount', [
    reversalId,
    chargeId,
    most,
  ])
}

async function amountOf(pool: pg.Pool, sql: string, values: readonly unknown[]): Promise<Nanos> {
  const { rows } = await pool.query<{ amount: bigint }>(sql, [...values])
  return nanos(rows[0]?.amount ?? 0n)
}
