import type { Ceiling } from '../budgets/account-budgets.ts'
import type { Caller } from '../identity/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import { asUnavailable, Fault, unavailable } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, type Nanos } from '../kernel/money.ts'
import { type BudgetState, leftOf } from '../ledger/balance.ts'
import type { TestCredit } from '../ledger/test-credit.ts'
import type { Quote } from '../pricing/quote-body.ts'
import { ceilingMembers, resetOfAll } from '../wording/money-words.ts'
import { requireBudget } from './require-budget.ts'
import { seesBalance } from './require-scope.ts'

type Asked = {
  readonly caller: Caller
  readonly ceilings: readonly Ceiling[]
  readonly needed: Nanos
  /** Of the balance. */
  readonly free: Nanos
}

/** Whether a call would be begun now, by the rule by which BEGIN decides: every ceiling first, of which the tightest is told, then the balance. */
export type QuotedAdmission = (asked: Asked) => Promise<Quote['admission']>

type Parts = {
  readonly readBudgets: (ids: readonly Id[]) => Promise<ReadonlyMap<Id, BudgetState>>
  readonly time: Pick<Clock, 'nowMs'>
  readonly testCredit: Pick<TestCredit, 'atHand'>
}

export function createQuotedAdmission({ readBudgets, time, testCredit }: Parts): QuotedAdmission {
  return async ({ caller, ceilings, needed, free }) => {
    if (lacksBudget(caller, needed)) return { fits: false, code: 'budget_required' }
    const states =
      ceilings.length === 0
        ? new Map<Id, BudgetState>()
        : await readBudgets(ceilings.map(({ allowanceId }) => allowanceId)).catch((cause: unknown) => {
            throw unavailable(cause)
          })
    const refusing = ceilings
      .map((ceiling) => ({ ceiling, left: leftIn(ceiling, states) }))
      .filter(({ left }) => needed > left)
      .sort((one, other) => (one.left < other.left ? -1 : 1))
    const [tightest] = refusing
    const isTold = seesBalance(caller)
    if (tightest !== undefined) {
      const { ceiling, left } = tightest
      const isOwn = ceiling.kind === 'key' || ceiling.kind === 'mandate'
      return {
        fits: false,
        code: 'budget_exceeded',
        ...((isTold || isOwn) && { left_usd: formatUsd(left) }),
        ...ceilingMembers(
          ceiling,
          resetOfAll(
            refusing.map((one) => one.ceiling),
            needed,
            time.nowMs(),
          ),
        ),
      }
    }
    if (needed <= free) return { fits: true }
    if (caller.mode === 'test') {
      const atHand = await testCredit.atHand(caller.accountId).catch(asUnavailable)
      if (needed <= free + atHand) return { fits: true }
    }
    return { fits: false, code: 'insufficient_balance', ...(isTold && { left_usd: formatUsd(free) }) }
  }
}

/** One that nobody has counted against yet has all of its amount. */
function leftIn({ allowanceId, budget }: Ceiling, states: ReadonlyMap<Id, BudgetState>): Nanos {
  const state = states.get(allowanceId)
  return state === undefined ? budget.amount : leftOf(state)
}

function lacksBudget(caller: Caller, needed: Nanos): boolean {
  try {
    requireBudget(caller, needed)
    return false
  } catch (thrown) {
    if (thrown instanceof Fault) return true
    throw thrown
  }
}
