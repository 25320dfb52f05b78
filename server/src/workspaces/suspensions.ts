import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type By, record } from '../storage/audit.ts'
import { inTransaction, type Query, type Transactions } from '../storage/transaction.ts'
import { requireNotClosed } from './closures.ts'
import { applyStops, type LockedWorkspace, lockWorkspace } from './stops.ts'

/**
 * An operator suspends a workspace: calls, agents, new keys, grants and invitations are refused from the commit on, and streams end at their next extension.
 * Calls that hold all that they may cost end as usual, tasks go on, and both are charged. Members read and export.
 */

const suspensionRow = z.object({ suspendedAt: z.date().nullable(), reason: z.string().nullable() })
export type Suspension = Readonly<z.output<typeof suspensionRow>>

/** What else the transaction does, such as letters. */
type Told = (query: Query, workspace: LockedWorkspace) => Promise<number>
type Parts = { readonly pool: Transactions; readonly tell: Told }

/** Changes why a workspace is suspended where it is. Says how many were told; null where nothing changed. */
export function suspendWorkspace(parts: Parts, by: By, id: Id, reason: string): Promise<number | null> {
  return change(parts, by, id, reason)
}

/** Takes calls again, unless the workspace is being closed. */
export function resumeWorkspace(parts: Parts, by: By, id: Id, reason: string): Promise<number | null> {
  return change(parts, by, id, null, reason)
}

function change({ pool, tell }: Parts, by: By, id: Id, reason: string | null, why = reason): Promise<number | null> {
  return inTransaction(pool, async (query) => {
    const workspace = await lockWorkspace(query, id)
    await requireNotClosed(query, id)
    const { rows } = await query(
      'select suspended_at as "suspendedAt", suspended_reason as reason from workspaces where id = $1',
      [id],
    )
    const before = suspensionRow.parse(rows[0])
    if (before.reason === reason) return null
    await query(
      `update workspaces set suspended_reason = $2::text, suspended_at = case when $2::text is not null then coalesce(suspended_at, clock_timestamp()) end
       where id = $1`,
      [id, reason],
    )
    await record(query, by, {
      action: reason === null ? 'workspace.resumed' : 'workspace.suspended',
      of: id,
      subject: id,
      before: { isSuspended: before.reason !== null, ...(before.reason !== null && { reason: before.reason }) },
      after: { isSuspended: reason !== null, reason: why },
    })
    const told = await tell(query, workspace)
    await query("select record_change(topic => 'workspace', key => $1)", [id])
    // The accounts last: from here on, calls that end wait for the commit.
    await applyStops(query, workspace)
    return told
  })
}
