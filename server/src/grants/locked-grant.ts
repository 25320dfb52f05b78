import { z } from 'zod'
import { BUDGET_ROW, type Budget, budgetIn, makeAllowance } from '../budgets/budgets.ts'
import { requireGrantPlace } from '../identity/key-places.ts'
import { TERMS_ROW, TERMS_SELECT, termsIn } from '../identity/key-terms.ts'
import { noSuchThing } from '../identity/locked-key.ts'
import { ASKS_ROW, ASKS_SELECT, asksIn } from '../identity/mandate-terms.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import { ZERO } from '../kernel/money.ts'
import type { Query } from '../storage/transaction.ts'

const row = z
  .object({
    ...{ id: z.string(), accountId: z.string(), allowanceId: z.string().nullable() },
    ...{ isRevoked: z.boolean(), expiresAt: z.date().nullable() },
    ...BUDGET_ROW,
    ...TERMS_ROW,
    ...ASKS_ROW,
  })
  .transform((columns) => ({
    id: columns.id,
    accountId: columns.accountId,
    allowanceId: columns.allowanceId,
    isRevoked: columns.isRevoked,
    expiresAt: columns.expiresAt,
    isPaused: columns.is_paused,
    /** What it has when it is not paused. */
    budget: budgetIn(columns),
    terms: termsIn(columns),
    asks: asksIn(columns),
  }))

/** A grant whose account is locked by the transaction that has read it. */
export type LockedGrant = Readonly<z.output<typeof row>>

/** Locks the account whose money the grant spends: everything that a call touches is changed under that lock. */
export async function lockGrant(query: Query, id: Id): Promise<LockedGrant> {
  const found = await findLocked(query, id)
  if (found === null) throw noSuchThing('grant', id)
  return found
}

export async function findLocked(query: Query, id: Id): Promise<LockedGrant | null> {
  await query('select from accounts where id = (select account_id from credentials where id = $1) for no key update', [
    id,
  ])
  const { rows } = await query(
    `select k.id, c.account_id as "accountId", k.allowance_id as "allowanceId", k.revoked_at is not null as "isRevoked",
       k.expires_at as "expiresAt", b.period, coalesce(k.paused_amount, b.amount) as amount, ${TERMS_SELECT}, ${ASKS_SELECT}
     from grants k join credentials c on c.id = k.id left join allowances b on b.id = k.allowance_id where k.id = $1`,
    [id],
  )
  return rows[0] === undefined ? null : row.parse(rows[0])
}

/** Changes what it may spend. One that is paused has the amount when it goes on. */
export async function setBudgetWithin(
  query: Query,
  ids: Ids,
  grant: LockedGrant,
  budget: Budget | null,
): Promise<void> {
  const { id, accountId, allowanceId, budget: before, isPaused } = grant
  const isSamePeriod = budget !== null && before?.period === budget.period
  const now = isPaused || budget === null ? ZERO : budget.amount
  if (allowanceId === null && budget !== null) await requireGrantPlace(query, accountId)
  if (allowanceId !== null)
    await query('select change_allowance(allowance => $1, new_amount => $2)', [allowanceId, isSamePeriod ? now : 0n])
  const kept = isSamePeriod
    ? allowanceId
    : await newAllowance(query, ids, accountId, budget && { ...budget, amount: now })
  await query(
    `update grants set allowance_id = $2, paused_amount = case when paused_at is null then null else $3::bigint end,
       noticed = case when $4 then 0 else noticed end where id = $1`,
    [id, kept, budget?.amount ?? null, (budget?.amount ?? 0n) > (before?.amount ?? 0n)],
  )
}

async function newAllowance(query: Query, ids: Ids, accountId: Id, budget: Budget | null): Promise<Id | null> {
  return budget === null ? null : makeAllowance(query, ids, accountId, budget)
}
