import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, nanos, ZERO } from '../kernel/money.ts'

const amount = z.bigint().transform((value): Nanos => nanos(value))

const balanceRow = z.object({ free: amount, held: amount, promo: amount, debt: amount, charged: amount })
export type Balance = z.output<typeof balanceRow>

/** What an account can spend now, and what is spoken for. */
export async function readBalance(pool: pg.Pool, accountId: Id): Promise<Balance> {
  const { rows } = await pool.query(
    'select credited + debt - charged - held as free, held, promo, debt, charged from accounts where id = $1',
    [accountId],
  )
  return balanceRow.parse(rows[0])
}

const budgetRow = z.object({ period: z.enum(['day', 'month', 'total']), amount, spent: amount })
export type BudgetState = z.output<typeof budgetRow>

/** An allowance in the period that is running. */
export async function readBudget(pool: pg.Pool, allowanceId: Id): Promise<BudgetState | undefined> {
  return (await readBudgets(pool, [allowanceId])).get(allowanceId)
}

const budgetRows = z.array(budgetRow.extend({ id: z.string() }))

/** Those of them that there are, each in the period that is running. */
export async function readBudgets(pool: pg.Pool, ids: readonly Id[]): Promise<ReadonlyMap<Id, BudgetState>> {
  const { rows } = await pool.query({
    name: 'budgets',
    text: `select a.id, a.period, least(p.amount, a.amount) as amount, coalesce(p.charged + p.held, 0)::bigint as spent
     from allowances a left join allowance_periods p
       on p.allowance_id = a.id and p.starts_at = period_start(a.period, clock_timestamp())
     where a.id = any($1::uuid[])`,
    values: [ids],
  })
  return new Map(budgetRows.parse(rows).map((row) => [row.id, row]))
}

/** One that was lowered below what was spent has nothing left. */
export function leftOf({ amount, spent }: Pick<BudgetState, 'amount' | 'spent'>): Nanos {
  return spent < amount ? nanos(amount - spent) : ZERO
}

/** Since when there is an account. */
export async function readAccountLife(pool: pg.Pool, accountId: Id): Promise<{ readonly createdAtMs: number }> {
  const { rows } = await pool.query({
    name: 'account_life',
    text: 'select created_at from accounts where id = $1',
    values: [accountId],
  })
  return { createdAtMs: z.object({ created_at: z.date() }).parse(rows[0]).created_at.getTime() }
}
