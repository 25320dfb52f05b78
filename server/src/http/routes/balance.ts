import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import type { Begin } from '../../gateway/begin.ts'
import type { Caller } from '../../identity/caller.ts'
import { leftOf, readBalance, readBudget } from '../../ledger/balance.ts'
import { admit } from './admit.ts'
import { fromLedger } from './from-ledger.ts'
import { money } from './money.ts'

/** GET /v1/balance: what can be spent with this key now. */
export function addBalance(scope: FastifyInstance, { pool, begin }: { readonly pool: pg.Pool; readonly begin: Begin }) {
  scope.get('/balance', async (request, reply) => balanceOf(pool, await admit(begin, 'balance', request, reply)))
}

/** What a key can spend, of its account and of its budget. */
export async function balanceOf(pool: pg.Pool, { accountId, allowances: [allowanceId], mode }: Caller) {
  const { free, held, promo, debt } = await fromLedger(readBalance(pool, accountId))
  const budget = allowanceId === undefined ? undefined : await fromLedger(readBudget(pool, allowanceId))
  return {
    currency: 'USD',
    mode,
    available: money(free),
    held: money(held),
    promotional: money(promo),
    debt: money(debt),
    budget:
      budget === undefined
        ? null
        : {
            period: budget.period,
            amount: money(budget.amount),
            spent: money(budget.spent),
            left: money(leftOf(budget)),
          },
  }
}
