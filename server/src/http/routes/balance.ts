import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import { z } from 'zod'
import { answer } from '../../contracts/answer.ts'
import { refusalsOfFree } from '../../contracts/refusals.ts'
import type { ContractRoute } from '../../contracts/route.ts'
import { namedCeilings } from '../../gateway/attribution.ts'
import type { Begin } from '../../gateway/begin.ts'
import type { HeaderNames } from '../../gateway/header-names.ts'
import { resetOf } from '../../gateway/money-words.ts'
import { seesBalance } from '../../gateway/require-scope.ts'
import type { Ceiling } from '../../identity/account-budgets.ts'
import { type Caller, ownAllowanceOf } from '../../identity/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Id } from '../../kernel/ids.ts'
import { ZERO } from '../../kernel/money.ts'
import { type BudgetState, leftOf, readBalance, readBudgets } from '../../ledger/balance.ts'
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
  budgets: z
    .array(
      z.strictObject({
        kind: z.enum(['key', 'mandate', 'member', 'workspace', 'tag', 'end_user']),
        subject: z.string().nullable(),
        period: z.string(),
        amount: moneyBody,
        spent: moneyBody,
        left: moneyBody,
        resets_at: z.iso.datetime().nullable(),
      }),
    )
    .meta({
      description:
        'All that calls of this key or token count against, and of the tags and the end user that this request names in its headers. A call has to fit into each.',
    }),
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

type Parts = {
  readonly pool: pg.Pool
  readonly begin: Begin
  readonly time: Pick<Clock, 'nowMs'>
  readonly headerNames: Pick<HeaderNames, 'endUser' | 'tags'>
}

/** GET /v1/balance: what can be spent with this key now; to a token that may not read the account, what its own grant can. */
export function addBalance(scope: FastifyInstance, { pool, begin, time, headerNames }: Parts) {
  scope.get('/balance', { exposeHeadRoute: true }, async (request, reply) => {
    const caller = await admit(begin, 'balance', request, reply)
    const { [headerNames.endUser]: endUser, [headerNames.tags]: tags } = request.headers
    return balanceOf({ pool, nowMs: time.nowMs() }, caller, { endUser: single(endUser), tags: single(tags) })
  })
}

const single = (value: string | readonly string[] | undefined) => (typeof value === 'string' ? value : undefined)

/** What a caller can spend, of the account where it may see that, and of the budgets that its calls have. */
export async function balanceOf(
  { pool, nowMs }: { readonly pool: pg.Pool; readonly nowMs: number },
  caller: Caller,
  said: { readonly endUser?: string | undefined; readonly tags?: string | undefined } = {},
) {
  const ceilings = namedCeilings(caller, said).filter(({ kind }) => seesBalance(caller) || isOwn(kind))
  const states = await statesOf(pool, ceilings)
  const own = ownAllowanceOf(caller)
  const budget = own === undefined ? undefined : states.get(own)
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
    budgets: ceilings.map((ceiling) => toldOf(ceiling, states.get(ceiling.allowanceId), nowMs)),
  } satisfies z.input<typeof body>
}

const isOwn = (kind: Ceiling['kind']) => kind === 'key' || kind === 'mandate'

async function statesOf(pool: pg.Pool, ceilings: readonly Ceiling[]): Promise<ReadonlyMap<Id, BudgetState>> {
  if (ceilings.length === 0) return new Map()
  return fromLedger(
    readBudgets(
      pool,
      ceilings.map(({ allowanceId }) => allowanceId),
    ),
  )
}

/** One that nobody has counted against yet has all of its amount. */
function toldOf({ kind, subject, budget }: Ceiling, state: BudgetState | undefined, nowMs: number) {
  const { period } = budget
  const { amount, spent } = state ?? { amount: budget.amount, spent: ZERO }
  const left = leftOf({ amount, spent })
  return {
    ...{ kind, subject, period, amount: money(amount), spent: money(spent), left: money(left) },
    resets_at: resetOf(period, nowMs),
  }
}

async function accountOf(pool: pg.Pool, accountId: Id) {
  const { free, held, promo, debt } = await fromLedger(readBalance(pool, accountId))
  return { available: money(free), held: money(held), promotional: money(promo), debt: money(debt) }
}
