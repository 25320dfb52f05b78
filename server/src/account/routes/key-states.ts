import { z } from 'zod'
import { money, moneyBody } from '../../api/money.ts'
import { refusalSumsOf } from '../../gateway/refusals.ts'
import { listKeysIn } from '../../identity/keys-of-account.ts'
import type { ListedKey } from '../../identity/listed-keys.ts'
import { UUID } from '../../kernel/ids.ts'
import { type BudgetState, leftOf, readBudgets } from '../../ledger/balance.ts'
import { lastUseOf } from '../../ledger/last-use.ts'
import { accountIn } from '../../people/membership.ts'
import { resetOf } from '../../wording/money-words.ts'
import { type AccountRoute, inWorkspace } from '../route.ts'

const DAYS = 30
const DAY_MS = 86_400_000
const MOST = 100

const keyState = z.strictObject({
  id: z.string(),
  budget: z
    .strictObject({ spent: moneyBody, held: moneyBody, left: moneyBody, resets_at: z.iso.datetime().nullable() })
    .nullable()
    .meta({ description: 'In the period that is running; spent has what is held. Null where the key has no budget.' }),
  last_used_at: z.iso
    .datetime()
    .nullable()
    .meta({ description: `When its last call ended; null where none did within ${DAYS} days.` }),
  refusals: z.array(z.strictObject({ reason: z.string(), count: z.int(), last_hour: z.iso.datetime() })).meta({
    description: `Of the last ${DAYS} days, the most frequent reason first; those of the last minute are missing.`,
  }),
})

export const KEY_STATE_ROUTES: readonly AccountRoute[] = [
  inWorkspace({
    operationId: 'list_key_states',
    method: 'GET',
    path: '/workspaces/{workspace_id}/key-states',
    need: 'workspace.read',
    tokens: 'own mode',
    mode: 'named',
    summary: 'What keys have left, when they were last used, and how often they were refused',
    tag: 'keys',
    query: z.strictObject({
      keys: z
        .string()
        .transform((text) => text.split(','))
        .pipe(z.array(z.string().regex(UUID, 'must be ids, separated by commas')).max(MOST))
        .meta({ type: 'string', description: `Ids of keys, separated by commas, at most ${MOST}.` }),
    }),
    answer: {
      description: 'Those of the keys that there are.',
      body: z.strictObject({ data: z.array(keyState) }),
    },
    async run({ pool, time }, { place, mode, query }) {
      const keys = await listKeysIn(pool, { workspaceId: place.id, accountId: accountIn(place, mode), ids: query.keys })
      const ids = keys.map(({ id }) => id)
      const nowMs = time.nowMs()
      const budgets = await readBudgets(
        pool,
        keys.flatMap(({ allowanceId }) => allowanceId ?? []),
      )
      const lastUse = await lastUseOf(pool, ids, DAYS)
      const refusals = await refusalSumsOf(pool, ids, new Date(nowMs - DAYS * DAY_MS))
      return {
        body: {
          data: keys.map((key) => ({
            id: key.id,
            budget: budgetIn(key, budgets.get(key.allowanceId ?? ''), nowMs),
            last_used_at: lastUse.get(key.id)?.toISOString() ?? null,
            refusals: (refusals.get(key.id) ?? []).map(({ reason, count, last_hour: hour }) => ({
              ...{ reason, count: Number(count), last_hour: hour.toISOString() },
            })),
          })),
        },
      }
    },
  }),
]

function budgetIn({ budget }: ListedKey, state: BudgetState | undefined, nowMs: number) {
  if (budget === null || state === undefined) return null
  const { spent, held } = state
  const left = leftOf({ amount: budget.amount, spent })
  return { spent: money(spent), held: money(held), left: money(left), resets_at: resetOf(budget.period, nowMs) }
}
