import type pg from 'pg'
import { z } from 'zod'
import { derivedId } from '../kernel/derived-id.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, NANOS_LIMIT, type Nanos, nanos, ZERO } from '../kernel/money.ts'
import { type By, record } from '../storage/audit.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { expirePromotions } from './credit.ts'

/** What came of taking a credit back. */
export type ReversedCredit = {
  readonly kind: 'payment' | 'promotion'
  readonly accountId: Id
  /** What was taken, debt included. */
  readonly amount: Nanos
  /** What of it the account no longer had. */
  readonly debt: Nanos
  /** False where it was taken back before. */
  readonly isNew: boolean
}

const credits = z.array(z.object({ kind: z.enum(['payment', 'promotion']), account_id: z.string() }))

/**
 * Takes a credit back that somebody gave by mistake, whole and once. A payment is reversed as a refund is: what is spent already becomes
 * debt. A promotion ends: what is spent of it was given. Undefined where there is no such credit.
 */
export async function reverseCredit(pool: pg.Pool, creditId: Id, by: By): Promise<ReversedCredit | undefined> {
  const { rows } = await pool.query(
    "select kind, account_id from entries where id = $1 and kind in ('payment', 'promotion')",
    [creditId],
  )
  const [credit] = credits.parse(rows)
  if (credit === undefined) return undefined
  if (credit.kind === 'payment') return inTransaction(pool, (query) => reverseWhole(query, creditId, by))
  const ended = await inTransaction(pool, (query) => endPromotion(query, credit.account_id, creditId, by))
  // What is free of it goes now; what running calls hold goes when they release it.
  if (ended.isNew) await expirePromotions(pool)
  return ended
}

const reversals = z.tuple([
  z.object({ account_id: z.string(), amount: z.bigint(), debt: z.bigint(), is_new: z.boolean() }),
])

async function reverseWhole(query: Query, paymentId: Id, by: By): Promise<ReversedCredit> {
  // The same for the same payment, so that it is taken back once, whoever asks and however often.
  const reversalId = derivedId('reversal', paymentId)
  await query('select reverse_payment(reversal_id => $1, payment_id => $2, most => $3)', [
    reversalId,
    paymentId,
    NANOS_LIMIT,
  ])
  // Of one that is repeated the entry was made by another transaction.
  const { rows } = await query(
    'select account_id, -credited as amount, debt, xmin = pg_current_xact_id()::xid as is_new from entries where id = $1',
    [reversalId],
  )
  const [{ account_id: accountId, is_new: isNew, ...row }] = reversals.parse(rows)
  const amount = nanos(row.amount)
  const after = { usd: formatUsd(amount), corrects: paymentId }
  if (isNew) {
    await freeReference(query, paymentId)
    await record(query, by, { action: 'payment.reversed', of: accountId, subject: reversalId, before: null, after })
  }
  return { kind: 'payment', accountId, amount, debt: nanos(row.debt), isNew }
}

/** What was given by mistake has not used up the reference of the payment: the right credit can carry it. The audit log keeps it. */
async function freeReference(query: Query, creditId: Id): Promise<void> {
  await query('update entry_notes set reference = null where entry_id = $1', [creditId])
}

const grants = z.array(z.object({ remaining: z.bigint() }))

async function endPromotion(query: Query, accountId: Id, id: Id, by: By): Promise<ReversedCredit> {
  await query('select from accounts where id = $1 for no key update', [accountId])
  // What calls have spent of it is counted lazily.
  await query('select count_promotions(account => $1)', [accountId])
  // One that is spent ends too: what a refund gives back of it must not be spent again.
  const { rows } = await query(
    `update promotions set expires_at = clock_timestamp()
     where id = $1 and expires_at > clock_timestamp() returning remaining`,
    [id],
  )
  const [grant] = grants.parse(rows)
  const ended = { kind: 'promotion', accountId, debt: ZERO } as const
  if (grant === undefined) return { ...ended, amount: ZERO, isNew: false }
  await freeReference(query, id)
  const amount = nanos(grant.remaining)
  const after = { usd: formatUsd(amount) }
  await record(query, by, { action: 'promotion.ended', of: accountId, subject: id, before: null, after })
  return { ...ended, amount, isNew: true }
}
