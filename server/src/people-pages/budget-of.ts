import type { ListedGrant } from '../grants/grants.ts'
import { type BudgetState, leftOf } from '../ledger/balance.ts'

/** Also while it is paused: then the ledger has nothing for it, and the grant what it has when it goes on. */
export function budgetOf({ budget }: Pick<ListedGrant, 'budget'>, state: BudgetState | undefined) {
  if (state === undefined || budget === null) return null
  const { spent, held } = state
  const { amount } = budget
  return { amount, spent, held, left: leftOf({ amount, spent }) }
}
