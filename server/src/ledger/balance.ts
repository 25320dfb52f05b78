import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, nanos, ZERO } from '../kernel/money.ts'
import { PERIODS } from '../kernel/period.ts'

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

const budgetRow = z.object({ period: z.enum(PERIODS), amount, spent: amount, held: amount })
export type BudgetState = z.output<typeof budgetRow>

/**
 * What stands in the period that is running, of each id. One that follows a budget has the amount that the budget has now.
 * There is one row of a period at most: the limit keeps PostgreSQL from making it a join, for which it reads the periods of everybody.
 */
const READ_BUDGETS = `select a.id, a.period, coalesce(b.amount, least(p.amount, a.amount)) as amount,
  coalesce(p.charged + p.held, 0)::bigint as spent, coalesce(p.held, 0)::bigint as held
  from allowances a cross join period_start(a.period, clock_timestamp()) running left join budgets b on b.id = a.follows
  left join lateral (
    select amount, charged, held from allowance_periods where allowance_id = a.id and starts_at = running limit 1
  ) p on true
  where a.id = any ($1::uuid[])`

/** An allowance in the period that is running. */
export async function readBudget(pool: pg.Pool, allowanceId: Id): Promise<BudgetState | undefined> {
  return (await readBudgets(pool, [allowanceId])).get(allowanceId)
}

/** One that was lowered below what was spent has nothing left. */
export function leftOf({ amount, spent }: Pick<BudgetState, 'amount' | 'spent'>): Nanos {
  return spent < amount ? nanos(amount - spent) : ZERO
}

const budgetRows = z.array(budgetRow.extend({ id: z.string() }))

/** Several at once, by their ids. */
export async function readBudgets(pool: pg.Pool, ids: readonly Id[]): Promise<ReadonlyMap<Id, BudgetState>> {
  const { rows } = await pool.query(READ_BUDGETS, [ids])
  return new Map(budgetRows.parse(rows).map(({ id, ...state }) => [id, state]))
}

const periodRows = z.array(
  budgetRow
    .extend({ id: z.string(), starts_at: z.date() })
    .transform(({ starts_at: startsAt, ...row }) => ({ ...row, startsAt })),
)

/** An allowance in a period, and since when that is. */
export type PeriodState = BudgetState & { readonly startsAt: Date }

/**
 * Of each the period before, for a day after it is over, and the one that is running, in this order: what was charged at the end of a period, and
 * what calls are charged that began in it, is seen in the next.
 */
export async function readPeriods(pool: pg.Pool, ids: readonly Id[]): Promise<ReadonlyMap<Id, readonly PeriodState[]>> {
  const { rows } = await pool.query(
    `select a.id, a.period, a.amount, p.charged + p.held as spent, p.held, p.starts_at
     from allowances a cross join clock_timestamp() now cross join period_start(a.period, now) running
     cross join lateral (
       select charged, held, starts_at from allowance_periods where allowance_id = a.id and starts_at = any (array[running,
         case when now < running + interval '1 day' then period_start(a.period, running - interval '1 second') end])
       order by starts_at desc limit 2
     ) p
     where a.id = any ($1::uuid[]) order by p.starts_at`,
    [ids],
  )
  return Map.groupBy(periodRows.parse(rows), ({ id }) => id)
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
