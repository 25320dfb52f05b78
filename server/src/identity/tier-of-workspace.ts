import { z } from 'zod'
import { TIERS, type TierLimits, tierOf } from '../catalogue/tiers.ts'
import type { Id } from '../kernel/ids.ts'
import { nanos } from '../kernel/money.ts'
import { OpenTransaction, type Transactions } from '../storage/transaction.ts'
import { BUDGETS_JSON, budgetRow } from './account-budgets.ts'

/** What a workspace has paid, and what an operator agreed to beyond what that earns. */
export const TIER_COLUMNS = 'w.tier_granted, w.requests_per_minute, w.tokens_per_minute, w.concurrency'

export const tierRow = z.object({
  paid: z.bigint(),
  tier_granted: z.enum(['growth', 'enterprise']).nullable(),
  requests_per_minute: z.int().nullable(),
  tokens_per_minute: z.bigint().nullable(),
  concurrency: z.int().nullable(),
})

type TierRow = z.output<typeof tierRow>

/** What the keys of a workspace share: its tier, what its customer plan pays, and budgets of both its accounts. */
const workspaceRow = tierRow.extend({
  id: z.string(),
  numerator: z.bigint(),
  denominator: z.bigint(),
  budgets: z.array(budgetRow),
})

export type WorkspaceRecord = z.output<typeof workspaceRow>

const LOAD = `select w.id, a.paid, ${TIER_COLUMNS}, p.numerator, p.denominator,
    (select ${BUDGETS_JSON} from budgets b where b.account_id in (w.live_account_id, w.test_account_id)) as budgets
  from workspaces w join accounts a on a.id = w.live_account_id join plans p on p.id = w.plan where w.id = $1`

export async function loadWorkspace(on: Transactions, id: Id): Promise<WorkspaceRecord | undefined> {
  const { rows } = await (on instanceof OpenTransaction
    ? on.query(LOAD, [id])
    : on.query({ name: 'load_workspace', text: LOAD, values: [id] }))
  return rows[0] && workspaceRow.parse(rows[0])
}

export function tierIn(row: TierRow): ReturnType<typeof tierOf> {
  return tierOf(nanos(row.paid), agreedIn(row))
}

/** Null where nothing was agreed. */
export function agreedIn(row: Omit<TierRow, 'paid'>): TierLimits | null {
  if (row.tier_granted === 'growth') return TIERS.growth
  const { requests_per_minute: requestsPerMinute, tokens_per_minute: tokens, concurrency } = row
  if (requestsPerMinute === null || tokens === null || concurrency === null) return null
  return { requestsPerMinute, tokensPerMinute: Number(tokens), concurrency }
}
