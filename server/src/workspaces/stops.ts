import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { type Query, queryOn, type Transactions } from '../storage/transaction.ts'

/**
 * What keeps a workspace from spending: its owners close it (closures.ts), or an operator suspends it (suspensions.ts). Both make its accounts inactive. BEGIN
 * and EXTEND read that under the lock of the account, and so is it written: from the commit on, every process refuses.
 */

const lockedRow = z.object({ id: z.string(), name: z.string(), accounts: z.array(z.string()) })
export type LockedWorkspace = z.output<typeof lockedRow>

/** Nobody else changes it, its keys or its members until the transaction has ended. */
export async function lockWorkspace(query: Query, id: Id): Promise<LockedWorkspace> {
  const { rows } = await query(
    'select id, name, array[live_account_id, test_account_id]::text[] as accounts from workspaces where id = $1 for no key update',
    [id],
  )
  if (rows[0] === undefined) throw new Fault('resource_not_found')
  return lockedRow.parse(rows[0])
}

const IS_SUSPENDED = 'w.suspended_at is not null'
const CLOSURE = "from closures where workspace_id = w.id and state <> 'canceled'"

/** Makes its accounts active where nothing stops it, and inactive where anything does. Locked in the order of their ids, as BEGIN locks them. */
export async function applyStops(query: Query, { id: workspaceId, accounts }: LockedWorkspace): Promise<void> {
  for (const id of accounts.toSorted())
    await query(
      `update accounts set active = not (${IS_SUSPENDED} or exists (select ${CLOSURE})) from workspaces w
       where accounts.id = $1 and w.id = $2 and active = (${IS_SUSPENDED} or exists (select ${CLOSURE}))`,
      [id, workspaceId],
    )
}

const stopRow = z.object({ isSuspended: z.boolean(), isClosing: z.boolean() })

/** Under the lock of the workspace: throws where nothing may be added to it, for operators too. */
export async function requireUnstopped(query: Query, workspaceId: Id): Promise<void> {
  const { rows } = await query(
    `select ${IS_SUSPENDED} as "isSuspended", exists (select ${CLOSURE}) as "isClosing" from workspaces w where id = $1`,
    [workspaceId],
  )
  const stop = stopRow.optional().parse(rows[0])
  if (stop?.isClosing === true) throw new Fault('workspace_closing')
  if (stop?.isSuspended === true) throw new Fault('workspace_suspended')
}

type Stopped = { readonly workspaceId: Id; readonly accountId: Id; readonly credentialId: Id }

const credentialRow = z.object({ isCredentialActive: z.boolean() })

/** How a credential stands whose account is inactive, and whose workspace is not closed for good: its tasks go on. Null for another reason. */
export async function findStop(
  on: Transactions,
  { workspaceId, accountId, credentialId }: Stopped,
): Promise<z.output<typeof credentialRow> | null> {
  const { rows } = await queryOn(on)(
    `select exists (select from credentials where id = $3 and account_id = $2 and active) as "isCredentialActive"
     from workspaces w where id = $1 and (${IS_SUSPENDED} or exists (select ${CLOSURE}))
       and not exists (select ${CLOSURE} and state = 'closed')`,
    [workspaceId, accountId, credentialId],
  )
  return credentialRow.optional().parse(rows[0]) ?? null
}
