import { type BudgetedEndUser, type Ceiling, ceilingsOfCall } from '../budgets/account-budgets.ts'
import { type FoundEndUser, otherEndUsers } from '../budgets/end-users.ts'
import type { MakeAllowances } from '../budgets/made-allowances.ts'
import type { Attribution } from '../calls/call.ts'
import type { Caller } from '../identity/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import { unavailable } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'

/** Whose spend a call is, with what budgets know its end user by. */
export type Attributed = Attribution & { readonly endUser: FoundEndUser | null }

/** What a call is held against beside the balance. At once, but for somebody whom this process meets for the first time. */
export type CeilingsFor = (
  caller: Pick<Caller, 'accountId' | 'ceilings' | 'budgetsOfCalls'>,
  attribution: Attributed | undefined,
) => readonly Ceiling[] | Promise<readonly Ceiling[]>

type Parts = { readonly makeAllowances: MakeAllowances; readonly time: Pick<Clock, 'nowMs'> }

export function createCeilingsFor({ makeAllowances, time }: Parts): CeilingsFor {
  async function made(making: Promise<readonly Ceiling[]>): Promise<readonly Ceiling[]> {
    return making.catch((cause: unknown) => {
      throw unavailable(cause)
    })
  }

  function budgeted(accountId: Id, found: FoundEndUser | null): BudgetedEndUser | null {
    if (found === null) return null
    const { id, named, lateAtMs } = found
    if (id === named.id && lateAtMs === null) return named
    const untilMs = id === named.id ? lateAtMs : null
    return { ...named, others: { ...otherEndUsers(accountId), untilMs, nowMs: time.nowMs() } }
  }

  return ({ accountId, ceilings, budgetsOfCalls }, attribution) => {
    if (budgetsOfCalls === null || attribution === undefined) return ceilings
    const { tags, endUser } = attribution
    const more = ceilingsOfCall(budgetsOfCalls, { tags, endUser: budgeted(accountId, endUser) })
    if (more.length === 0) return ceilings
    const all = makeAllowances([...ceilings, ...more])
    return all instanceof Promise ? made(all) : all
  }
}
