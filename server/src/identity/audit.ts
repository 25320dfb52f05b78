import type { Id, Ids } from '../kernel/ids.ts'
import type { Query } from '../storage/transaction.ts'

/** Who does something to a workspace: an operator, a member, or the service itself. */
export type Actor = string

export type Deed = {
  readonly actor: Actor
  readonly action: string
  readonly workspaceId: Id
  readonly subject: Id
  /** Never a secret, nor anything that one could be made from. */
  readonly detail?: Readonly<Record<string, string | number | boolean | null | readonly string[]>>
}

/** Writes down who changed what, in the transaction that changes it. */
export async function record(query: Query, ids: Ids, deed: Deed): Promise<void> {
  const { actor, action, workspaceId, subject, detail = {} } = deed
  await query('insert into audit (id, actor, action, workspace_id, subject, detail) values ($1, $2, $3, $4, $5, $6)', [
    ids.next(),
    actor,
    action,
    workspaceId,
    subject,
    JSON.stringify(detail),
  ])
}
