import type pg from 'pg'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { BudgetKind } from '../../server/src/budgets/account-budgets.ts'
import { endUserOf } from '../../server/src/budgets/end-users.ts'
import { setBudget } from '../../server/src/budgets/set-budgets.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import type { Period } from '../../server/src/kernel/period.ts'
import { endUserNamed } from '../../server/src/protocols/end-user.ts'
import { ACTOR, ask, type Customer } from '../acceptance/installation.ts'

export type Wanted = {
  readonly kind: BudgetKind
  /** The id of a member, `name=value`, `name=*`, what callers call an end user, or `*`. */
  readonly subject?: string
  readonly amount: bigint
  readonly period?: Period
}

/** Sets a budget of a customer's test money, as an operator does. */
export function set(
  pool: pg.Pool,
  { workspaceId, accountId }: Pick<Customer, 'workspaceId' | 'accountId'>,
  { kind, subject = '', amount, period = 'total' }: Wanted,
) {
  const isNamed = kind === 'end_user' && subject !== '*'
  const of = isNamed ? endUserIdOf(accountId, subject) : subject
  const budget = { period, amount: nanos(amount) }
  return setBudget({ pool }, ACTOR, { workspaceId, mode: 'test', kind, subject: of, label: subject, budget })
}

export function endUserIdOf(accountId: Id, text: string): Id {
  return endUserOf(accountId, endUserNamed(text)).id
}

/** Until a process knows as many budgets as the caller has, of those that a request with such headers meets. */
export async function untilKnown(
  url: string,
  secret: string,
  count: number,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const known = async () => {
    const { budgets } = (await ask(url, secret, '/v1/balance', { headers })).json
    return Array.isArray(budgets) && budgets.length === count
  }
  await until(known, PATIENCE_MS, `that a process knows ${count} budgets`)
}

/** What is counted against an allowance in the period that is running. */
export async function countedOf(pool: pg.Pool, allowanceId: Id): Promise<bigint> {
  const { rows } = await pool.query<{ counted: bigint }>(
    `select coalesce(sum(p.charged + p.held), 0)::bigint as counted from allowances a
     join allowance_periods p on p.allowance_id = a.id and p.starts_at = period_start(a.period, clock_timestamp()) where a.id = $1`,
    [allowanceId],
  )
  return rows[0]?.counted ?? 0n
}
