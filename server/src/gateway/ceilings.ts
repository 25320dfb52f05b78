import type { Attribution } from '../calls/call.ts'
import { type Ceiling, ceilingsOfCall } from '../identity/account-budgets.ts'
import type { Caller } from '../identity/caller.ts'
import type { MakeAllowances } from '../identity/made-allowances.ts'
import { unavailable } from '../kernel/fault.ts'

/** What a call is held against beside the balance. At once, but for somebody whom this process meets for the first time. */
export type CeilingsFor = (
  caller: Caller,
  attribution: Attribution | undefined,
) => readonly Ceiling[] | Promise<readonly Ceiling[]>

export function createCeilingsFor({ makeAllowances }: { readonly makeAllowances: MakeAllowances }): CeilingsFor {
  async function made(making: Promise<readonly Ceiling[]>): Promise<readonly Ceiling[]> {
    return making.catch((cause: unknown) => {
      throw unavailable(cause)
    })
  }

  return ({ accountId, ceilings, budgetsOfCalls }, attribution) => {
    if (budgetsOfCalls === null || attribution === undefined) return ceilings
    const more = ceilingsOfCall(budgetsOfCalls, attribution)
    if (more.length === 0) return ceilings
    const all = makeAllowances(accountId, [...ceilings, ...more])
    return all instanceof Promise ? made(all) : all
  }
}
