import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import { z } from 'zod'
import { answer } from '../../contracts/answer.ts'
import { refusalsOfFree } from '../../contracts/refusals.ts'
import type { ContractRoute } from '../../contracts/route.ts'
import type { Begin } from '../../gateway/begin.ts'
import { nanos, ZERO } from '../../kernel/money.ts'
import { readBalance, readBudget } from '../../ledger/balance.ts'
import { admit } from './admit.ts'
import { fromLedger } from './from-ledger.ts'
import { money, moneyBody } from './money.ts'

const body = z.strictObject({
  currency: z.literal('USD'),
  mode: z.enum(['live', 'test']),
  available: moneyBody,
  held: moneyBody,
  promotional: moneyBody,
  debt: moneyBody,
  budget: z
    .strictObject({ period: z.string(), amount: moneyBody, spent: moneyBody, left: moneyBody })
    .nullable()
    .meta({ description: 'Of the key; null where it has none.' }),
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

/** GET /v1/balance: what can be spent with this key now. */
export function addBalance(scope: FastifyInstance, { pool, begin }: { readonly pool: pg.Pool; readonly begin: Begin }) {
  scope.get('/balance', async (request, reply) => {
    const caller = await admit(begin, 'balance', request, reply)
    const { free, held, promo, debt } = await fromLedger(readBalance(pool, caller.accountId))
    const [allowanceId] = caller.allowances
    const budget = allowanceId === undefined ? undefined : await fromLedger(readBudget(pool, allowanceId))
    return {
      currency: 'USD' as const,
      mode: caller.mode,
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
              // One that was lowered below what was spent has nothing left.
              left: money(budget.spent < budget.amount ? nanos(budget.amount - budget.spent) : ZERO),
            },
    } satisfies z.input<typeof body>
  })
}
