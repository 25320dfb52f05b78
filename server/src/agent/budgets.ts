import type pg from 'pg'
import type { Caller } from '../identity/caller.ts'
import type { Nanos } from '../kernel/money.ts'
import { leftOf, readBudget } from '../ledger/balance.ts'
import type { Left } from './tell.ts'

export type ReadLeft = (caller: Caller, balance: Nanos | undefined) => Promise<Left>

/** What a key has left. That its budget can't be read now takes nothing from an answer that is paid for. */
export function createReadLeft(pool: pg.Pool): ReadLeft {
  return async ({ allowances: [allowanceId] }, balance) => {
    if (allowanceId === undefined) return { balance, budget: undefined }
    const state = await readBudget(pool, allowanceId).catch(() => undefined)
    return { balance, budget: state && { left: leftOf(state), period: state.period } }
  }
}
