import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import { type Id, isId } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { may, type Permission, ROLES } from '../kernel/role.ts'
import { queryOn, type Transactions } from '../storage/transaction.ts'

/** A workspace as one of its members finds it. */
export type Place = Readonly<z.output<typeof place>>

const place = z.object({
  id: z.string(),
  name: z.string(),
  liveAccountId: z.string(),
  testAccountId: z.string(),
  memberId: z.string(),
  role: z.enum(ROLES),
  /** When it is closed for good, or was; null where nobody has asked for that. */
  closesAt: z.date().nullable(),
  /** Since when an operator has suspended it, and why; null where none has. */
  suspendedAt: z.date().nullable(),
  suspendedReason: z.string().nullable(),
})

type Asked = {
  readonly personId: Id
  readonly workspaceId: string
  /** Whether nobody else may change the workspace, its keys and its members until the transaction has ended. */
  readonly isLocked?: boolean
}

/** To who is no member, it is as if it were not there: one statement finds out, whichever of the two it is. */
export async function findPlace(on: Transactions, { personId, workspaceId, isLocked = false }: Asked): Promise<Place> {
  if (!isId(workspaceId)) throw new Fault('resource_not_found')
  const { rows } = await queryOn(on)(
    `select w.id, w.name, w.live_account_id as "liveAccountId", w.test_account_id as "testAccountId", m.id as "memberId", m.role,
       (select closes_at from closures where workspace_id = w.id and state <> 'canceled') as "closesAt",
       w.suspended_at as "suspendedAt", w.suspended_reason as "suspendedReason"
     from workspaces w join members m on m.workspace_id = w.id and m.person_id = $2 where w.id = $1
     ${isLocked ? 'for no key update of w' : ''}`,
    [workspaceId, personId],
  )
  const found = place.optional().parse(rows[0])
  if (found === undefined) throw new Fault('resource_not_found')
  if (!isLocked) return found
  // Who waited for the lock has read the role as it was before: it is read again under it.
  return findPlace(on, { personId, workspaceId })
}

export function requirePermission({ role }: Pick<Place, 'role'>, permission: Permission): void {
  if (!may(role, permission))
    throw new Fault('forbidden', { detail: `Your role is ${role}, which may not do this. Ask an owner or admin.` })
}

export function accountIn({ liveAccountId, testAccountId }: Place, mode: Mode): Id {
  return mode === 'live' ? liveAccountId : testAccountId
}
