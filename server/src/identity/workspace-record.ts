import { z } from 'zod'
import { BUDGETS_JSON, budgetRow } from '../budgets/account-budgets.ts'
import type { Id } from '../kernel/ids.ts'
import { OpenTransaction, type Transactions } from '../storage/transaction.ts'
import { TIER_COLUMNS, tierRow } from '../workspaces/tier.ts'

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
