import { z } from 'zod'
import { TIERS, type Tier, type TierLimits, tierOf } from '../catalogue/tiers.ts'
import type { Id } from '../kernel/ids.ts'
import { nanos } from '../kernel/money.ts'
import { OpenTransaction, type Transactions } from '../storage/transaction.ts'
import { BUDGETS_JSON, budgetRow } from './account-budgets.ts'

/** What the keys of a workspace share: its tier, what its customer plan pays, and budgets of both its accounts. */
const workspaceRow = z.object({
  id: z.string(),
  paid: z.bigint(),
  tier_granted: z.enum(['growth', 'enterprise']).nullable(),
  requests_per_minute: z.int().nullable(),
  tokens_per_minute: z.bigint().nullable(),
  concurrency: z.int().nullable(),
  numerator: z.bigint(),
  denominator: z.bigint(),
  budgets: z.array(budgetRow),
})

export type WorkspaceRecord = z.output<typeof workspaceRow>

const LOAD = `select w.id, a.paid, w.tier_granted, w.requests_per_minute, w.tokens_per_minute, w.concurrency, p.numerator, p.denominator,
    (select ${BUDGETS_JSON} from budgets b where b.account_id in (w.live_account_id, w.test_account_id)) as budgets
  from workspaces w join accounts a on a.id = w.live_account_id join plans p on p.id = w.plan where w.id = $1`

export async function loadWorkspace(on: Transactions, id: Id): Promise<WorkspaceRecord | undefined> {
  const { rows } = await (on instanceof OpenTransaction
    ? on.query(LOAD, [id])
    : on.query({ name: 'load_workspace', text: LOAD, values: [id] }))
  return rows[0] && workspaceRow.parse(rows[0])
}

export function tierIn(workspace: WorkspaceRecord): { readonly tier: Tier; readonly limits: TierLimits } {
  const tier = tierOf(nanos(workspace.paid), workspace.tier_granted)
  return { tier, limits: tier === 'enterprise' ? agreedLimits(workspace) : TIERS[tier] }
}

function agreedLimits({ requests_per_minute, tokens_per_minute, concurrency }: WorkspaceRecord): TierLimits {
  const { requestsPerMinute, tokensPerMinute, concurrency: atOnce } = TIERS.growth
  return {
    requestsPerMinute: requests_per_minute ?? requestsPerMinute,
    tokensPerMinute: Number(tokens_per_minute ?? tokensPerMinute),
    concurrency: concurrency ?? atOnce,
  }
}
