import type { Caller } from '../identity/caller.ts'
import { Fault } from '../kernel/fault.ts'
import { formatUsd, type Nanos, ZERO } from '../kernel/money.ts'

/** Throws where an access token would pay and its grant has no amount. A key without a budget may spend what the account has. */
export function requireBudget({ token, budget }: Caller, needed: Nanos): void {
  if (token === null || budget !== null || needed === ZERO) return
  throw new Fault('budget_required', { members: { needed_usd: formatUsd(needed) } })
}
