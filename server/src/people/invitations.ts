import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { ROLES, type Role } from '../kernel/role.ts'
import { record } from '../storage/audit.ts'
import { inTransaction, type Query, queryOn, type Transactions } from '../storage/transaction.ts'
import { requireUnstopped } from '../workspaces/stops.ts'
import { triedLink } from './mailed-links.ts'
import { enter, requireRoom } from './members.ts'
import { requireAddress } from './names.ts'
import { OPERATOR, personNamed, tellOfAdmin } from './owner-notices.ts'
import type { PeopleParts, PeopleSettings } from './parts.ts'
import { hashOf, hashOfToken, newToken } from './tokens.ts'
import { byPerson, type Visitor } from './visitor.ts'
import { type Actor, type Locked, withWorkspace } from './workspace-lock.ts'

/** Invitations to a workspace: for one address, by a link in a mail, for a week. */

const LIFE_DAYS = 7

type Parts = Pick<PeopleParts, 'pool' | 'ids' | 'sendMail' | 'attempts'> & {
  readonly settings: Pick<PeopleSettings, 'siteUrl'>
}

export type Invited = { readonly email: string; readonly role: Role }

const invitation = z
  .object({
    workspace: z.string(),
    by_name: z.string().nullable(),
    by_email: z.string().nullable(),
    email: z.string(),
    role: z.enum(ROLES),
    expires_at: z.date(),
    has_account: z.boolean(),
  })
  .transform(({ by_name: name, by_email: email, expires_at: until, has_account: hasAccount, ...row }) => ({
    ...{ ...row, until, hasAccount, by: { name: name ?? OPERATOR.name, email: email ?? OPERATOR.email } },
  }))

export type Invitation = Readonly<z.output<typeof invitation>>

export function createInvitations({ pool, ids, sendMail, attempts, settings }: Parts) {
  return {
    /** Invites an address; another invitation that it has from this workspace is over with it. */
    async invite(actor: Actor, workspaceId: Id, typed: Invited): Promise<Id> {
      await requireInvite(actor, workspaceId, typed)
      return inviteWithin(pool, actor, workspaceId, typed)
    },

    requireInvite,
    inviteWithin,

    /** For the page behind the link. Changes nothing. */
    readInvitation(token: string, visitor: Visitor): Promise<Invitation | null> {
      return attempts.guess(triedLink(attempts, visitor), async () => {
        const hash = hashOfToken(token)
        if (hash === null) return null
        const { rows } = await pool.query(
          `select workspaces.name as workspace, inviter.name as by_name, inviter.email as by_email, invitations.email, role,
             expires_at, exists (select from people where people.email = invitations.email and verified_at is not null) as has_account
           from invitations join workspaces on workspaces.id = workspace_id left join people inviter on inviter.id = invited_by
           where hash = $1 and decided_at is null and expires_at > clock_timestamp()`,
          [hash],
        )
        return invitation.optional().parse(rows[0]) ?? null
      })
    },

    /** Joins or declines, once. Null where the invitation was decided, is too old or is none of ours. */
    decideInvitation(
      personId: Id,
      token: string,
      decision: 'join' | 'decline',
      visitor: Visitor,
    ): Promise<{ readonly workspaceId: Id } | null> {
      return attempts.guess(triedLink(attempts, visitor), async () => {
        const hash = hashOfToken(token)
        if (hash === null) return null
        return inTransaction(pool, (query) => decide(query, { personId, hash, decision, visitor }))
      })
    },

    /** False where it was decided before. */
    revokeInvitation(actor: Actor, workspaceId: Id, id: Id, on: Transactions = pool): Promise<boolean> {
      return withWorkspace(on, workspaceId, actor, async ({ query, by, requireChange }) => {
        const { rows } = await query(
          'select role from invitations where id = $1 and workspace_id = $2 and decided_at is null for update',
          [id, workspaceId],
        )
        const open = roleRow.optional().parse(rows[0])
        if (open === undefined) return false
        requireChange(null, open.role)
        await close(query, id, 'revoke')
        const before = { role: open.role }
        await record(query, by, { action: 'invitation.revoked', of: workspaceId, subject: id, before, after: null })
        return true
      })
    },

    /** Those that nobody has decided on yet, for who may see the members. */
    async invitationsOf(workspaceId: Id, on: Transactions = pool): Promise<readonly OpenInvitation[]> {
      const { rows } = await queryOn(on)(
        `select id, email, role, created_at as "createdAt", expires_at as until from invitations
         where workspace_id = $1 and decided_at is null and expires_at > clock_timestamp() order by id limit 500`,
        [workspaceId],
      )
      return z.array(openRow).parse(rows)
    },
  }

  /** Refuses who may not invite, and who invites too often. It has to be asked outside of every transaction, before the invitation is made. */
  async function requireInvite(actor: Actor, workspaceId: Id, { email, role }: Invited): Promise<void> {
    const { limits } = attempts
    const tried = [
      { limit: limits.invitationsOfWorkspace, key: hashOf(workspaceId) },
      { limit: limits.invitationsToAddress, key: hashOf(requireAddress(email)) },
    ]
    // Whoever may not invite must not use up what those may who do.
    await withWorkspace(pool, workspaceId, actor, async ({ requireChange }) => requireChange(null, role))
    await attempts.take(tried)
  }

  function inviteWithin(on: Transactions, actor: Actor, workspaceId: Id, { email, role }: Invited): Promise<Id> {
    return withWorkspace(on, workspaceId, actor, (locked) => add(locked, { email: requireAddress(email), role }))
  }

  async function add(locked: Locked, { email, role }: Invited): Promise<Id> {
    const { query, by, workspaceId, name, personId, requireChange } = locked
    requireChange(null, role)
    const { rows: members } = await query('select from members where workspace_id = $1 and email = $2', [
      workspaceId,
      email,
    ])
    if (members.length > 0) throw new Fault('already_member')
    await query(
      `update invitations set decided_at = clock_timestamp(), decision = 'revoke'
       where workspace_id = $1 and email = $2 and decided_at is null`,
      [workspaceId, email],
    )
    await requireRoom(query, workspaceId)
    const { secret, hash } = newToken()
    const id = ids.next()
    const { rows } = await query(
      `insert into invitations (id, hash, workspace_id, email, role, invited_by, expires_at)
       values ($1, $2, $3, $4, $5, $6, clock_timestamp() + interval '${LIFE_DAYS} days') returning expires_at`,
      [id, hash, workspaceId, email, role, personId],
    )
    const until = untilRow.parse(rows[0]).expires_at.toISOString()
    await record(query, by, { action: 'invitation.made', of: workspaceId, subject: id, before: null, after: { role } })
    const link = `${settings.siteUrl}/invitations/${secret.reveal()}`
    const inviter = await personNamed(query, personId)
    await sendMail(query, { what: 'invitation', to: email, workspace: name, by: inviter, role, link, until })
    return id
  }

  type Decision = {
    readonly personId: Id
    readonly hash: Buffer
    readonly decision: 'join' | 'decline'
    readonly visitor: Visitor
  }

  async function decide(query: Query, { personId, hash, decision, visitor }: Decision) {
    const workspace = await lockWorkspaceOf(query, hash)
    if (workspace === null) return null
    const workspaceId = workspace.id
    const { rows } = await query(
      `select invitations.id, invitations.email, role, invited_by, invitations.email = people.email as is_theirs
       from invitations join people on people.id = $2 and people.verified_at is not null
       where hash = $1 and decided_at is null and invitations.expires_at > clock_timestamp() for update of invitations`,
      [hash, personId],
    )
    const open = decidedRow.optional().parse(rows[0])
    if (open === undefined) return null
    if (!open.is_theirs) throw new Fault('invitation_for_another')
    await close(query, open.id, decision)
    const by = byPerson(personId, visitor)
    if (decision === 'decline') {
      const change = { of: workspaceId, subject: open.id, before: { role: open.role }, after: null }
      await record(query, by, { action: 'invitation.declined', ...change })
      return { workspaceId }
    }
    await requireUnstopped(query, workspaceId)
    const memberId = await enter(query, ids, { workspaceId, email: open.email, role: open.role, personId })
    if (memberId === null) throw new Fault('already_member')
    const after = { personId, role: open.role }
    await record(query, by, { action: 'member.joined', of: workspaceId, subject: memberId, before: null, after })
    const notices = { sendMail, siteUrl: settings.siteUrl }
    const { email, role, invited_by: inviterId } = open
    await tellOfAdmin(query, notices, { workspace, email, from: null, to: role, personId: inviterId })
    return { workspaceId }
  }
}

const openRow = z.object({
  id: z.string(),
  email: z.string(),
  role: z.enum(ROLES),
  createdAt: z.date(),
  until: z.date(),
})
export type OpenInvitation = Readonly<z.output<typeof openRow>>

const roleRow = z.object({ role: z.enum(ROLES) })
const untilRow = z.object({ expires_at: z.date() })
const decidedRow = z.object({
  id: z.string(),
  email: z.string(),
  role: z.enum(ROLES),
  invited_by: z.string().nullable(),
  is_theirs: z.boolean(),
})
const workspaceRow = z.object({ id: z.string(), name: z.string() })

/** Who takes the inviter's role away waits for us, or we for them: then the invitation is revoked when we come to it. */
async function lockWorkspaceOf(query: Query, hash: Buffer): Promise<z.output<typeof workspaceRow> | null> {
  const { rows } = await query(
    'select id, name from workspaces where id = (select workspace_id from invitations where hash = $1) for no key update',
    [hash],
  )
  return workspaceRow.optional().parse(rows[0]) ?? null
}

async function close(query: Query, id: Id, decision: 'join' | 'decline' | 'revoke'): Promise<void> {
  await query('update invitations set decided_at = clock_timestamp(), decision = $2 where id = $1', [id, decision])
}
