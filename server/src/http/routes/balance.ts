import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import { z } from 'zod'
import { answer } from '../../contracts/answer.ts'
import { refusalsOfFree } from '../../contracts/refusals.ts'
import type { ContractRoute } from '../../contracts/route.ts'
import type { Begin } from '../../gateway/begin.ts'
import { seesBalance } from '../../gateway/require-scope.ts'
import type { Caller } from '../../identity/caller.ts'
import type { Id } from '../../kernel/ids.ts'
import { leftOf, readBalance, readBudget } from '../../ledger/balance.ts'
import { admit } from './admit.ts'
import { fromLedger } from './from-ledger.ts'
import { money, moneyBody } from './money.ts'

const body = z.strictObject({
  currency: z.literal('USD'),
  mode: z.enum(['live', 'test']),
  available: moneyBody.optional(),
  held: moneyBody.optional(),
  promotional: moneyBody.optional(),
  debt: moneyBody.optional(),
  budget: z
    .strictObject({ period: z.string(), amount: moneyBody, spent: moneyBody, left: moneyBody })
    .nullable()
    .meta({ description: 'Of the key or the token; null where it has none.' }),
})

export const BALANCE_ROUTES: readonly ContractRoute[] = [
  {
    operationId: 'get_balance',
    method: 'GET',
    path: '/v1/balance',
    summary: 'What can be spent with this key now',
    tag: 'account',
    access: 'credential',
    answers: { 200: answer('The balance.', body) },
    refusals: refusalsOfFree('openai'),
  },
]

/** GET /v1/balance: what can be spent with this key now; to a token that may not read the account, what its own grant can. */
export function addBalance(scope: FastifyInstance, { pool, begin }: { readonly pool: pg.Pool; readonly begin: Begin }) {
  scope.get('/balance', async (request, reply) => balanceOf(pool, await admit(begin, 'balance', request, reply)))
}

/** What a caller can spend, of the account where it may see that, and of its budget. */
export async function balanceOf(pool: pg.Pool, caller: Caller) {
  const [allowanceId] = caller.allowances
  const budget = allowanceId === undefined ? undefined : await fromLedger(readBudget(pool, allowanceId))
  return {
    currency: 'USD' as const,
    mode: caller.mode,
    ...(seesBalance(caller) && (await accountOf(pool, caller.accountId))),
    budget:
      budget === undefined
        ? null
        : {
            period: budget.period,
            amount: money(budget.amount),
            spent: money(budget.spent),
            left: money(leftOf(budget)),
          },
  } satisfies z.input<typeof body>
}

async function accountOf(pool: pg.Pool, accountId: Id) {
  const { free, held, promo, debt } = await fromLedger(readBalance(pool, accountId))
  return { available: money(free), held: money(held), promotional: money(promo), debt: money(debt) }
}
