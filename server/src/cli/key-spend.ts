import type pg from 'pg'
import type { ListedKey } from '../identity/listed-keys.ts'
import { formatUsd, nanos, ZERO } from '../kernel/money.ts'
import { readBudget } from '../ledger/balance.ts'
import { type KeySpend, spendOfKeys } from '../ledger/key-spend.ts'
import { budgetLine } from './budget-text.ts'
import { plain } from './command.ts'
import { ownTerms, stateOf } from './key-terms.ts'

const NOTHING: KeySpend = { week: ZERO, month: ZERO, total: ZERO }

/** A line for each key: what it is, what it has spent, what is left of its budget, and what it has of its own. */
export async function keyLines(pool: pg.Pool, keys: readonly ListedKey[]): Promise<readonly string[]> {
  const spent = await spendOfKeys(
    pool,
    keys.map(({ id }) => id),
  )
  const lines: string[] = []
  for (const key of keys) {
    const { month } = spent.get(key.id) ?? NOTHING
    const parts = [key.id, key.mode, key.name, stateOf(key), `${formatUsd(month)} USD this month`]
    lines.push(plain([...parts, ...(await budgetParts(pool, key)), ...ownTerms(key.terms)].join('  ')))
  }
  return lines
}

async function budgetParts(pool: pg.Pool, { budget, allowanceId }: ListedKey): Promise<readonly string[]> {
  if (budget === null || allowanceId === null) return []
  return [`budget ${budgetLine(budget)}, ${await budgetLeft(pool, allowanceId)} left`]
}

async function budgetLeft(pool: pg.Pool, allowanceId: string): Promise<string> {
  const state = await readBudget(pool, allowanceId)
  return formatUsd(state === undefined || state.spent >= state.amount ? ZERO : nanos(state.amount - state.spent))
}

/** What `keys show` tells of a key's money. */
export async function spendOf(pool: pg.Pool, key: ListedKey): Promise<readonly string[]> {
  const { month, total } = (await spendOfKeys(pool, [key.id])).get(key.id) ?? NOTHING
  const left = key.allowanceId === null ? '' : `; ${await budgetLeft(pool, key.allowanceId)} USD of the budget left`
  return [`Spent: ${formatUsd(month)} USD this month, ${formatUsd(total)} in total${left}`]
}
