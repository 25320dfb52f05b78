import { derivedId } from '../kernel/derived-id.ts'
import type { Id } from '../kernel/ids.ts'

/** A member as it outlives its membership: the person, and the address in lower case by which it was named before somebody signed up with it. */
export type MemberIdentity = { readonly personId: Id | null; readonly email: string | null }

/**
 * What the budget of a member may be set for: the person, or the address in this workspace while there is none. Never the membership, which
 * is another one when the same person comes back.
 */
export function memberSubjects(workspaceId: Id, { personId, email }: MemberIdentity): readonly string[] {
  return [
    ...(personId === null ? [] : [personId]),
    ...(email === null ? [] : [derivedId('member', workspaceId, email.toLowerCase())]),
  ]
}
