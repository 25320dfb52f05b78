import type pg from 'pg'
import type { Id } from '../kernel/ids.ts'
import type { Nanos } from '../kernel/money.ts'

export type Credit = {
  /** The same id again adds nothing. */
  readonly entryId: Id
  readonly accountId: Id
  readonly kind: 'payment' | 'promotion' | 'dispute_won'
  readonly amount: Nanos
}

/** Adds money to an account, debt first. False where it was added before. */
export async function creditAccount(pool: pg.Pool, { entryId, accountId, kind, amount }: Credit): Promise<boolean> {
  const { rows } = await pool.query<{ added: boolean }>('select credit_account($1, $2, $3, $4) as added', [
    entryId,
    accountId,
    kind,
    amount,
  ])
  return rows[0]?.added ?? false
}
