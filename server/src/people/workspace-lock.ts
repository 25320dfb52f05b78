import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { mayChange, ROLES, type Role } from '../kernel/role.ts'
import type { By } from '../storage/audit.ts'
import { inTransaction, type Query, type Transactions } from '../storage/transaction.ts'
import { requireNotClosed } from '../workspaces/closures.ts'
import { byPerson, type Visitor } from './visitor.ts'

/**
 * Every change of who belongs to a workspace has its row locked: one happens after the other, and each sees the roles that the one
 * before it left. So what a role allows is judged in the transaction that uses it, and two owners can't both leave as the last but one.
 */

/** Who changes something: a person, who needs a role for it, or an operator, who needs none. */
export type Actor = { readonly by: By; readonly personId: Id | null }

export function actorOf(personId: Id, visitor: Visitor): Actor {
  return { by: byPerson(personId, visitor), personId }
}

export type Locked = {
  readonly query: Query
  readonly by: By
  readonly workspaceId: Id
  readonly name: string
  readonly personId: Id | null
  /** Refuses what the role does not allow; null stands for somebody who is no member before, or after. */
  readonly requireChange: (from: Role | null, to: Role | null) => void
}

const roleRow = z.object({ role: z.enum(ROLES) })
const nameRow = z.object({ name: z.string() })

export function withWorkspace<T>(
  on: Transactions,
  workspaceId: Id,
  { by, personId }: Actor,
  work: (locked: Locked) => Promise<T>,
): Promise<T> {
  return inTransaction(on, async (query) => {
    const { rows } = await query('select name from workspaces where id = $1 for no key update', [workspaceId])
    const workspace = nameRow.optional().parse(rows[0])
    const role = personId === null ? 'operator' : await roleOf(query, workspaceId, personId)
    // To who is no member, it is as if it were not there.
    if (workspace === undefined || role === null) throw new Fault('resource_not_found')
    await requireNotClosed(query, workspaceId)
    const requireChange = (from: Role | null, to: Role | null) => {
      if (role !== 'operator' && !mayChange(role, from, to))
        throw new Fault('forbidden', { detail: `Your role is ${role}, which may not do this. Ask an owner or admin.` })
    }
    return work({ query, by, workspaceId, name: workspace.name, personId, requireChange })
  })
}

async function roleOf(query: Query, workspaceId: Id, personId: Id): Promise<Role | null> {
  const { rows } = await query('select role from members where workspace_id = $1 and person_id = $2', [
    workspaceId,
    personId,
  ])
  return roleRow.optional().parse(rows[0])?.role ?? null
}

/** What somebody invited others to while they were allowed to goes with the role that allowed it. */
export async function revokeBeyond(
  query: Query,
  workspaceId: Id,
  personId: Id | null,
  role: Role | null,
): Promise<void> {
  if (personId === null) return
  const allowed = ROLES.filter((given) => role !== null && mayChange(role, null, given))
  await query(
    `update invitations set decided_at = clock_timestamp(), decision = 'revoke'
     where workspace_id = $1 and invited_by = $2 and decided_at is null and role <> all ($3::text[])`,
    [workspaceId, personId, allowed],
  )
}
