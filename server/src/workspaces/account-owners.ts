import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { queryOn, type Transactions } from '../storage/transaction.ts'

const ownerRow = z.object({ account_id: z.string(), mode: z.enum(['live', 'test']), id: z.string(), name: z.string() })

/** Whose money accounts are, by their ids. An account that belongs to no workspace is not among them. */
export async function workspacesOfAccounts(on: Transactions, accountIds: readonly Id[]) {
  const { rows } = await queryOn(on)(
    `select live_account_id as account_id, 'live' as mode, id, name from workspaces where live_account_id = any ($1)
     union all select test_account_id, 'test', id, name from workspaces where test_account_id = any ($1)`,
    [accountIds],
  )
  return new Map(
    z
      .array(ownerRow)
      .parse(rows)
      .map(({ account_id: accountId, ...workspace }) => [accountId, workspace]),
  )
}
