import type pg from 'pg'
import { z } from 'zod'
import { fromLedger } from '../api/from-ledger.ts'
import { money, moneyBody } from '../api/money.ts'
import type { Ceiling } from '../budgets/account-budgets.ts'
import { namedCeilings } from '../gateway/attribution.ts'
import { seesBalance } from '../gateway/require-scope.ts'
import { type Caller, ownAllowanceOf } from '../identity/caller.ts'
import type { Id } from '../kernel/ids.ts'
import { ZERO } from '../kernel/money.ts'
import { type BudgetState, leftOf, readBalance, readBudgets } from '../ledger/balance.ts'
import { resetOf } from '../wording/money-words.ts'
import { type CallerRoute, forAgents, forKey } from './route.ts'

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

export const BALANCE_ROUTES: readonly CallerRoute[] = [
  forKey({
    operationId: 'get_balance',
    method: 'GET',
    path: '/v1/balance',
    summary: 'What can be spent with this key now',
    tag: 'account',
    counts: 'balance',
    answer: { description: 'The balance.', body },
    agents: forAgents({
      id: 'get_balance',
      summary: 'See how much money is left, of the account and of the budget of this key',
      asks: `balance budget money credit credits funds left remaining remain spend spent spending how much can i have
        wallet account afford allowance quota bill billing usd dollars`,
      example: {},
      category: 'account',
      input: z.strictObject({}),
    }),
    async run({ pool, time, headerNames }, { caller, header }) {
      const named = { endUser: header(headerNames.endUser), tags: header(headerNames.tags) }
      return { body: await balanceOf({ pool, nowMs: time.nowMs() }, caller, named) }
    },
  }),
]

/** What a caller can spend, of the account where it may see that, and of the budgets that its calls have. */
async function balanceOf(
  { pool, nowMs }: { readonly pool: pg.Pool; readonly nowMs: number },
  caller: Caller,
  named: { readonly endUser: string | undefined; readonly tags: string | undefined },
) {
  const ceilings = namedCeilings(caller, named).filter(({ kind }) => seesBalance(caller) || isOwn(kind))
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
