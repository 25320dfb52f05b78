import type { Id } from '../kernel/ids.ts'
import type { Role } from '../kernel/role.ts'
import type { Transactions } from '../storage/transaction.ts'
import { type Attempts, createAttempts } from './attempts.ts'
import { forgetUnconfirmed } from './forget.ts'
import { createInvitations, type Invited } from './invitations.ts'
import { type KeysDecision, keysOfMember } from './member-keys.ts'
import * as members from './members.ts'
import type { PeopleParts } from './parts.ts'
import { createResets } from './resets.ts'
import { createSecondFactor } from './second-factor.ts'
import * as sessions from './sessions.ts'
import { createSignIn } from './sign-in.ts'
import { createSignUp } from './sign-up.ts'
import { byPerson, type Visitor } from './visitor.ts'
import { type Actor, actorOf } from './workspace-lock.ts'

type Parts = Omit<PeopleParts, 'attempts'> & { readonly attempts?: Attempts }

/** People: how they sign up and in, what they prove, and to which workspaces they belong. Pages and APIs ask this alone. */
export function createPeople({ attempts: given, ...rest }: Parts) {
  const { pool } = rest
  const parts: PeopleParts = { ...rest, attempts: given ?? createAttempts({ pool }) }
  const invitations = createInvitations(parts)
  const notices = { sendMail: parts.sendMail, siteUrl: parts.settings.siteUrl }

  return {
    ...createSignUp(parts),
    ...createSignIn(parts),
    ...createSecondFactor(parts),
    ...createResets(parts),

    sessionOf: (token: string) => sessions.sessionOf(pool, token),
    listSessions: (personId: Id) => sessions.listSessions(pool, personId),
    endSession: (personId: Id, id: Id, visitor: Visitor) =>
      sessions.endSession(pool, byPerson(personId, visitor), personId, id),
    endAllSessions: (personId: Id, visitor: Visitor, exceptId: Id | null = null) =>
      sessions.endAllSessions(pool, byPerson(personId, visitor), personId, exceptId),

    workspacesOf: (personId: Id) => members.workspacesOf(pool, personId),
    membersOf: (workspaceId: Id) => members.membersOf(pool, workspaceId),
    createWorkspace: (personId: Id, name: string, visitor: Visitor, on: Transactions = pool) =>
      members.foundWorkspace(parts, personId, name, visitor, on),
    changeRole: (personId: Id, workspaceId: Id, memberId: Id, role: Role, visitor: Visitor) =>
      members.changeRole({ pool, notices }, actorOf(personId, visitor), workspaceId, memberId, role),
    removeMember: (personId: Id, workspaceId: Id, memberId: Id, visitor: Visitor, keys: KeysDecision | null = null) =>
      members.removeMember({ pool, notices }, actorOf(personId, visitor), workspaceId, memberId, keys),
    leave: (personId: Id, workspaceId: Id, visitor: Visitor, keys: KeysDecision | null = null) =>
      members.leave({ pool, notices }, { ...actorOf(personId, visitor), personId }, workspaceId, keys),
    keysOfMember: (workspaceId: Id, memberId: Id) => keysOfMember(pool, workspaceId, memberId),
    async transfer(personId: Id, workspaceId: Id, toMemberId: Id, visitor: Visitor): Promise<void> {
      const from = await members.memberIdOf(pool, workspaceId, personId)
      await members.transfer({ pool, notices }, actorOf(personId, visitor), workspaceId, { from, to: toMemberId })
    },

    invite: (personId: Id, workspaceId: Id, invited: Invited, visitor: Visitor) =>
      invitations.invite(actorOf(personId, visitor), workspaceId, invited),
    /** The two steps of it, for whoever makes the invitation a part of a transaction. */
    requireInvite: invitations.requireInvite,
    inviteWithin: invitations.inviteWithin,
    readInvitation: invitations.readInvitation,
    decideInvitation: invitations.decideInvitation,
    invitationsOf: invitations.invitationsOf,
    revokeInvitation: (personId: Id, workspaceId: Id, id: Id, visitor: Visitor) =>
      invitations.revokeInvitation(actorOf(personId, visitor), workspaceId, id),
    revokeInvitationWithin: (on: Transactions, actor: Actor, workspaceId: Id, id: Id) =>
      invitations.revokeInvitation(actor, workspaceId, id, on),

    forgetUnconfirmed: () => forgetUnconfirmed(pool),
  }
}

export type People = ReturnType<typeof createPeople>
