import type pg from 'pg'
import type { Id } from '../kernel/ids.ts'
import { type BudgetState, readBudgets } from './balance.ts'

/** How a budget stands; undefined where there is none, or where it can't be read now: that takes nothing from an answer that is paid for. */
export type ReadBudgetState = (allowanceId: Id) => Promise<BudgetState | undefined>

type Budgets = ReadonlyMap<Id, BudgetState>
type Batch = { readonly ids: Set<Id>; readonly read: Promise<Budgets> }

const NONE: Budgets = new Map()

/**
 * Reads budgets after calls. Who asks while a statement runs waits for the next one, with everybody else who does: it reads what has been
 * settled before it began.
 */
export function createBudgetReader(pool: pg.Pool): ReadBudgetState {
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

  return async (id) => {
    next ??= collect()
    next.ids.add(id)
    return (await next.read).get(id)
  }
}
