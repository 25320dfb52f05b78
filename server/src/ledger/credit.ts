import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, type Nanos } from '../kernel/money.ts'
import { type By, record } from '../storage/audit.ts'
import { inTransaction, type Query, type Transactions } from '../storage/transaction.ts'

export type Credit = {
  /** The same id again adds nothing. */
  readonly entryId: Id
  readonly accountId: Id
  readonly amount: Nanos
  /** By which who paid knows it, such as the number of a transfer: no two entries have the same. */
  readonly reference?: string | undefined
  /** For operators. */
  readonly note?: string | undefined
} & (
  | { readonly kind: 'payment' }
  /** Promotional credit is spent first. Without an expiry it stays. */
  | { readonly kind: 'promotion'; readonly expiresAt?: Date }
)

/** Adds money to an account, debt first. False where it was added before. */
export function creditAccount(pool: pg.Pool, credit: Credit): Promise<boolean> {
  return creditWithin((text, values = []) => pool.query(text, [...values]), credit)
}

/** The same, and who added it is in the audit log: both, or neither. */
export function creditAccountBy(pool: Transactions, by: By, credit: Credit): Promise<boolean> {
  const { entryId: subject, accountId, kind, amount, reference, note } = credit
  const expiresAt = ('expiresAt' in credit && credit.expiresAt?.toISOString()) || null
  return inTransaction(pool, async (query) => {
    const isNew = await creditWithin(query, credit)
    if (!isNew) return false
    await noteWithin(query, credit)
    const after = {
      usd: formatUsd(amount),
      kind,
      accountId,
      ...(kind === 'promotion' && { expiresAt }),
      reference,
      note,
    }
    await record(query, by, { action: 'account.credited', of: accountId, subject, before: null, after })
    return true
  })
}

const notedRow = z.object({ entry_id: z.string() })

async function noteWithin(query: Query, { entryId, reference, note }: Credit): Promise<void> {
  if (reference === undefined && note === undefined) return
  const { rowCount } = await query(
    'insert into entry_notes (entry_id, reference, note) values ($1, $2, $3) on conflict (reference) do nothing',
    [entryId, reference ?? null, note ?? null],
  )
  if (rowCount === 1) return
  const { rows } = await query('select entry_id from entry_notes where reference = $1', [reference])
  throw new Error(
    `the reference ${JSON.stringify(reference)} stands at entry ${notedRow.parse(rows[0]).entry_id} already, so nothing was added`,
  )
}

/** The same, together with whatever else its transaction does, which says who added it. */
export async function creditWithin(query: Query, credit: Credit): Promise<boolean> {
  const { entryId, accountId, kind, amount } = credit
  const expiresAt = ('expiresAt' in credit && credit.expiresAt) || 'infinity'
  const { rows } = await query(
    'select credit_account(entry_id => $1, account => $2, entry_kind => $3, credit => $4, expires => $5) as added',
    [entryId, accountId, kind, amount, expiresAt],
  )
  return added.parse(rows)[0].added
}

const added = z.tuple([z.object({ added: z.boolean() })])

/** Whether the account owed when this was added. The entry says what it paid of the debt: asked of the account before, that could change until the credit. */
export async function hasPaidDebt(query: Query, entryId: Id): Promise<boolean> {
  const { rows } = await query('select from entries where id = $1 and debt < 0', [entryId])
  return rows.length > 0
}

const EXPIRED_AT_ONCE = 100

/** Takes promotional credit that has expired, of every account. How many grants that were. */
export async function expirePromotions(pool: pg.Pool): Promise<number> {
  let all = 0
  for (;;) {
    const { rows } = await pool.query<{ expired: number }>('select expire_promotions(most => $1) as expired', [
      EXPIRED_AT_ONCE,
    ])
    const expired = rows[0]?.expired ?? 0
    all += expired
    if (expired < EXPIRED_AT_ONCE) return all
  }
}
