import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import type { Begin } from '../../gateway/begin.ts'
import { seesBalance } from '../../gateway/require-scope.ts'
import type { Id } from '../../kernel/ids.ts'
import { nanos, ZERO } from '../../kernel/money.ts'
import { readBalance, readBudget } from '../../ledger/balance.ts'
import { admit } from './admit.ts'
import { fromLedger } from './from-ledger.ts'
import { money } from './money.ts'

/** GET /v1/balance: what can be spent with this key now; to a token that may not read the account, what its own grant can. */
export function addBalance(scope: FastifyInstance, { pool, begin }: { readonly pool: pg.Pool; readonly begin: Begin }) {
  scope.get('/balance', async (request, reply) => {
    const caller = await admit(begin, 'balance', request, reply)
    const [allowanceId] = caller.allowances
    const budget = allowanceId === undefined ? undefined : await fromLedger(readBudget(pool, allowanceId))
    return {
      currency: 'USD',
      mode: caller.mode,
      ...(seesBalance(caller) && (await accountOf(pool, caller.accountId))),
      budget:
        budget === undefined
          ? null
          : {
              period: budget.period,
              amount: money(budget.amount),
              spent: money(budget.spent),
              // One that was lowered below what was spent has nothing left.
              left: money(budget.spent < budget.amount ? nanos(budget.amount - budget.spent) : ZERO),
            },
    }
  })
}

async function accountOf(pool: pg.Pool, accountId: Id) {
  const { free, held, promo, debt } = await fromLedger(readBalance(pool, accountId))
  return { available: money(free), held: money(held), promotional: money(promo), debt: money(debt) }
}
