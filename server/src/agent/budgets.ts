import type pg from 'pg'
import type { Caller } from '../identity/caller.ts'
import type { Id } from '../kernel/ids.ts'
import type { Nanos } from '../kernel/money.ts'
import { type BudgetState, leftOf, readBalance, readBudgets } from '../ledger/balance.ts'
import type { Left } from './tell.ts'

/** The balance is read where it is not known already. */
export type ReadLeft = (caller: Caller, balance: Nanos | undefined) => Promise<Left>

type Budgets = ReadonlyMap<Id, BudgetState>
type Batch = { readonly ids: Set<Id>; readonly read: Promise<Budgets> }

const NONE: Budgets = new Map()

/**
 * What a key has left. Who asks while a statement runs waits for the next one, with everybody else who does: it reads what has been settled
 * before it began. That a budget can't be read now takes nothing from an answer that is paid for.
 */
export function createReadLeft(pool: pg.Pool): ReadLeft {
  let running: Promise<unknown> | undefined
  let next: Batch | undefined

  function collect(): Batch {
    const ids = new Set<Id>()
    const read = (running ?? Promise.resolve()).then(() => {
      next = undefined
      const budgets = readBudgets(pool, [...ids]).catch(() => NONE)
      running = budgets
      return budgets
    })
    return { ids, read }
  }

  async function readFree(accountId: Id): Promise<Nanos | undefined> {
    return readBalance(pool, accountId).then(
      ({ free }) => free,
      () => undefined,
    )
  }

  return async ({ accountId, allowances: [id] }, known) => {
    const balance = known ?? (await readFree(accountId))
    if (id === undefined) return { balance, budget: undefined }
    next ??= collect()
    next.ids.add(id)
    const state = (await next.read).get(id)
    return { balance, budget: state && { left: leftOf(state), period: state.period } }
  }
}
