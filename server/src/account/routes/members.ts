import type pg from 'pg'
import { z } from 'zod'
import { idForm } from '../../api/forms.ts'
import { PAGE, pageAmong, pageOf } from '../../api/pages.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Id } from '../../kernel/ids.ts'
import { formatUsd, ZERO } from '../../kernel/money.ts'
import { mayChange, ROLES } from '../../kernel/role.ts'
import { spendOfKeys } from '../../ledger/key-spend.ts'
import { KEYS_DECISION, keysDecisionIn, keysOfMember, undecidedKeys } from '../../people/member-keys.ts'
import { changeRole, type Member, membersOf, removeMember, transfer } from '../../people/members.ts'
import type { Actor } from '../../people/workspace-lock.ts'
import type { Transactions } from '../../storage/transaction.ts'
import type { Member as Asker } from '../authenticate.ts'
import type { AccountParts } from '../parts.ts'
import { type AccountRoute, inWorkspace } from '../route.ts'

const role = z.enum(ROLES)
const member = z.strictObject({
  id: z.string(),
  email: z.string(),
  name: z.string().nullable().meta({ description: 'Null while nobody has signed up with the address.' }),
  role,
  has_second_factor: z.boolean(),
  joined_at: z.iso.datetime(),
})

export function toldMember({
  id,
  email,
  name,
  role: given,
  hasSecondFactor,
  createdAt,
}: Member): z.output<typeof member> {
  return { id, email, name, role: given, has_second_factor: hasSecondFactor, joined_at: createdAt.toISOString() }
}

/** One of the workspace; that of another is as absent as one that never was. */
async function memberIn(on: Transactions, workspaceId: Id, id: string | undefined): Promise<z.output<typeof member>> {
  const found = (await membersOf(on, workspaceId)).find((one) => one.id === id)
  if (found === undefined) throw new Fault('resource_not_found')
  return toldMember(found)
}

/** Who acts, and through which grant. */
function actorOf({ personId, by }: Asker): Actor {
  return { personId, by }
}

/** What changes members in a transaction of ours. */
function partsOn({ sendMail, siteUrl }: AccountParts, on: Transactions) {
  return { pool: on, notices: { sendMail, siteUrl } }
}

/** Refuses with the keys of a member that work, and what they were charged in the last week. */
async function requireNoKeys(pool: pg.Pool, workspaceId: Id, memberId: Id): Promise<void> {
  const keys = await keysOfMember(pool, workspaceId, memberId)
  if (keys.length === 0) return
  const ids = keys.map(({ id }) => id)
  const spent = await spendOfKeys(pool, ids)
  throw undecidedKeys(
    keys.map((one) => ({ ...one, charged_last_week_usd: formatUsd(spent.get(one.id)?.week ?? ZERO) })),
  )
}

const invitation = z.strictObject({
  id: z.string(),
  email: z.string(),
  role,
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime(),
})

type Open = {
  readonly id: Id
  readonly email: string
  readonly role: (typeof ROLES)[number]
  readonly createdAt: Date
  readonly until: Date
}

export function toldInvitation({ id, email, role: given, createdAt, until }: Open): z.output<typeof invitation> {
  return { id, email, role: given, created_at: createdAt.toISOString(), expires_at: until.toISOString() }
}

const ALL = '/workspaces/{workspace_id}/members'
const ONE = `${ALL}/{member_id}` as const
const INVITATIONS = '/workspaces/{workspace_id}/invitations'

export const MEMBER_ROUTES: readonly AccountRoute[] = [
  inWorkspace({
    operationId: 'list_members',
    method: 'GET',
    path: ALL,
    need: 'workspace.read',
    tokens: 'both',
    summary: 'Members of a workspace, the oldest first',
    tag: 'members',
    query: z.strictObject({ ...PAGE, role: role.optional().meta({ description: 'Only those with this role.' }) }),
    answer: { description: 'A page of members.', body: pageOf(member) },
    async run({ pool }, { place, query }) {
      const all = await membersOf(pool, place.id)
      const some = all.filter((one) => query.role === undefined || one.role === query.role)
      return { body: pageAmong(some, query, toldMember) }
    },
  }),
  inWorkspace({
    operationId: 'get_member',
    method: 'GET',
    path: ONE,
    need: 'workspace.read',
    tokens: 'both',
    summary: 'A member',
    tag: 'members',
    answer: { description: 'The member.', body: member, hasEtag: true },
    run: async ({ pool }, { place, params }) => ({ body: await memberIn(pool, place.id, params.member_id) }),
  }),
  inWorkspace({
    operationId: 'update_member',
    method: 'PATCH',
    path: ONE,
    need: 'members.manage',
    tokens: 'never',
    summary: 'Change the role of a member',
    description:
      'Only owners make or demote owners. What the role no longer allows ends with it: grants, and invitations that the member made.',
    tag: 'members',
    body: z.strictObject({ role }),
    answer: { description: 'The member.', body: member, hasEtag: true },
    codes: ['last_owner'],
    async run(parts, { member: asker, place, params, body, on, requireMatch }) {
      const before = await memberIn(on, place.id, params.member_id)
      requireMatch(before)
      await changeRole(partsOn(parts, on), actorOf(asker), place.id, before.id, body.role)
      return { body: await memberIn(on, place.id, before.id) }
    },
  }),
  inWorkspace({
    operationId: 'remove_member',
    method: 'DELETE',
    path: ONE,
    need: 'workspace.read',
    tokens: 'never',
    whileClosing: true,
    summary: 'Remove a member, or leave',
    description:
      'Everybody may leave. Others are removed by owners and admins, and owners by owners alone. Grants of the member end with it. A member who has keys that work is removed only with a decision on them: without one, the refusal lists the keys with what they were charged in the last week. Who leaves and does not manage the workspace can only have them revoked. Owners are told by mail what became of the keys.',
    tag: 'members',
    query: z.strictObject({
      keys: z.string().regex(KEYS_DECISION, 'must be revoke, keep or to:<member_id>').optional().meta({
        description: 'What becomes of their keys: revoke, keep, or to:<member_id> for another member.',
      }),
    }),
    answer: { description: 'The member as it was.', body: member },
    codes: ['last_owner', 'member_has_keys'],
    async prepare({ pool }, { place, params, query }) {
      const going = await memberIn(pool, place.id, params.member_id)
      // Whoever may not remove them does not learn of their keys.
      if (place.memberId !== going.id && !mayChange(place.role, going.role, null)) return
      if (query.keys === undefined) await requireNoKeys(pool, place.id, going.id)
    },
    async run(parts, { member: asker, place, params, on, query: { keys } }) {
      const before = await memberIn(on, place.id, params.member_id)
      const decision = keys === undefined ? null : keysDecisionIn(keys)
      await removeMember(partsOn(parts, on), actorOf(asker), place.id, before.id, decision)
      return { body: before }
    },
  }),
  inWorkspace({
    operationId: 'transfer_workspace',
    method: 'POST',
    path: '/workspaces/{workspace_id}/transfer',
    need: 'owners.manage',
    tokens: 'never',
    summary: 'Make another member the owner, and yourself an admin',
    tag: 'members',
    body: z.strictObject({ member_id: idForm }),
    answer: { description: 'The new owner.', body: member },
    async run(parts, { member: asker, place, body, on }) {
      const to = await memberIn(on, place.id, body.member_id)
      await transfer(partsOn(parts, on), actorOf(asker), place.id, { from: place.memberId, to: to.id })
      return { body: await memberIn(on, place.id, to.id) }
    },
  }),
  inWorkspace({
    operationId: 'list_invitations',
    method: 'GET',
    path: INVITATIONS,
    need: 'workspace.read',
    tokens: 'both',
    summary: 'Invitations that nobody has decided on yet, the oldest first',
    tag: 'members',
    query: z.strictObject(PAGE),
    answer: { description: 'A page of invitations.', body: pageOf(invitation) },
    async run({ people }, { place, query }) {
      return { body: pageAmong(await people.invitationsOf(place.id), query, toldInvitation) }
    },
  }),
  inWorkspace({
    operationId: 'create_invitation',
    method: 'POST',
    path: INVITATIONS,
    need: 'members.manage',
    tokens: 'never',
    summary: 'Invite an address, by a mail with a link that works for a week',
    description: 'Only owners invite owners. Another invitation of the same address is over with it.',
    tag: 'members',
    body: z.strictObject({ email: z.string().min(3).max(300), role }),
    answer: { status: 201, description: 'The invitation.', body: invitation },
    codes: ['already_member', 'members_full'],
    async prepare({ people }, { member: asker, place, body }) {
      await people.requireInvite(actorOf(asker), place.id, body)
    },
    async run({ people }, { member: asker, place, body, on }) {
      const id = await people.inviteWithin(on, actorOf(asker), place.id, body)
      const made = (await people.invitationsOf(place.id, on)).find((one) => one.id === id)
      if (made === undefined) throw new Error('an invitation that was just made is not there')
      return { body: toldInvitation(made) }
    },
  }),
  inWorkspace({
    operationId: 'revoke_invitation',
    method: 'DELETE',
    path: `${INVITATIONS}/{invitation_id}`,
    need: 'members.manage',
    tokens: 'never',
    whileClosing: true,
    summary: 'Take an invitation back',
    tag: 'members',
    answer: { description: 'The invitation as it was.', body: invitation },
    async run({ people }, { member: asker, place, params, on }) {
      const before = (await people.invitationsOf(place.id, on)).find((one) => one.id === params.invitation_id)
      if (before === undefined) throw new Fault('resource_not_found')
      await people.revokeInvitationWithin(on, actorOf(asker), place.id, before.id)
      return { body: toldInvitation(before) }
    },
  }),
]
