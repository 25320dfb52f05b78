import type pg from 'pg'
import { seesBalance } from '../gateway/require-scope.ts'
import { type Caller, ownAllowanceOf } from '../identity/caller.ts'
import type { Id } from '../kernel/ids.ts'
import type { Nanos } from '../kernel/money.ts'
import { leftOf, readBalance } from '../ledger/balance.ts'
import { createBudgetReader } from '../ledger/budget-reader.ts'
import type { Left } from './tell.ts'

/** The balance is read where it is not known already. */
export type ReadLeft = (caller: Caller, balance: Nanos | undefined) => Promise<Left>

/** What a key has left. */
export function createReadLeft(pool: pg.Pool): ReadLeft {
  const readBudget = createBudgetReader(pool)

  async function readFree(accountId: Id): Promise<Nanos | undefined> {
    return readBalance(pool, accountId).then(
      ({ free }) => free,
      () => undefined,
    )
  }

  return async (caller, known) => {
    const { accountId } = caller
    const id = ownAllowanceOf(caller)
    // An access token is told of the account what its person has allowed it to read.
    const balance = known ?? (seesBalance(caller) ? await readFree(accountId) : undefined)
    if (id === undefined) return { balance, budget: undefined }
    const state = await readBudget(id)
    return { balance, budget: state && { left: leftOf(state), period: state.period } }
  }
}
