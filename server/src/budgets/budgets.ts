import { z } from 'zod'
import type { Id, Ids } from '../kernel/ids.ts'
import { formatUsd, type Nanos, nanos } from '../kernel/money.ts'
import { PERIODS, type Period } from '../kernel/period.ts'
import type { Query } from '../storage/transaction.ts'

/** What a key or a grant may spend in a period: an allowance of its account. */
export type Budget = { readonly period: Period; readonly amount: Nanos }

/** The columns of an allowance that a statement may not find. */
export const BUDGET_ROW = {
  period: z.enum(PERIODS).nullable(),
  amount: z.bigint().nullable(),
} as const

export function budgetIn({
  period,
  amount,
}: {
  period: Budget['period'] | null
  amount: bigint | null
}): Budget | null {
  return period === null || amount === null ? null : { period, amount: nanos(amount) }
}

export async function makeAllowance(query: Query, ids: Ids, accountId: Id, { period, amount }: Budget): Promise<Id> {
  const id = ids.next()
  await query('insert into allowances (id, account_id, period, amount) values ($1, $2, $3, $4)', [
    id,
    accountId,
    period,
    amount,
  ])
  return id
}

/** For the audit log. */
export function budgetFacts(budget: Budget | null) {
  return { budget: budget === null ? null : { period: budget.period, usd: formatUsd(budget.amount) } }
}
