import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import { ROLES, type Role } from '../kernel/role.ts'
import { createAttempts } from '../people/attempts.ts'
import { createInvitations } from '../people/invitations.ts'
import { readAddress } from '../people/mailbox.ts'
import { keysDecisionIn } from '../people/member-keys.ts'
import { addMember, changeRole, type Member, membersOf, removeMember, transfer } from '../people/members.ts'
import type { Actor } from '../people/workspace-lock.ts'
import { findWorkspace } from '../workspaces/workspaces.ts'
import { action, field, type OperatorParts } from './action.ts'
import { accountField, idField } from './fields.ts'

const list = action({
  name: 'members list',
  summary: 'list the members of an account',
  effect: 'reads',
  positional: ['account'],
  input: z.object({ account: accountField() }),
  async run({ pool }, { account }) {
    const { id } = await findWorkspace(pool, account).catch(inWords(`account ${account}`))
    return membersOf(pool, id)
  },
  lines: (members) => (members.length === 0 ? ['There are no members.'] : members.map(lineOf)),
})

function lineOf({ id, email, name, role, personId, hasSecondFactor }: Member): string {
  const state = personId === null ? 'not signed up yet' : `${name ?? ''}${hasSecondFactor ? '  second factor' : ''}`
  return `${id}  ${role}  ${email}  ${state}`
}

/** An operator needs no role in the workspace. */
const actor = ({ by }: OperatorParts): Actor => ({ by, personId: null })

const email = field('email', 'e-mail address of the member', emailOf)
const role = field('role', `role: ${ROLES.join(', ')}`, roleOf)
const member = idField('member', 'id of the member: see farebox members list')

const add = action({
  name: 'members add',
  summary: `add an address as a member at once, with the role ${ROLES.join(', ')}; a new person joins at sign-up`,
  effect: 'writes',
  positional: ['account', 'email', 'role'],
  input: z.object({ account: accountField(), email, role }),
  async run(parts, { account, ...invited }) {
    const added = { pool: parts.pool, ids: parts.ids, notices: await parts.letters() }
    const id = await addMember(added, actor(parts), account, invited).catch(inWords(account))
    return { id, ...invited }
  },
  lines: ({ id, role: given }) => [`Member ${id} added as ${given}.`],
})

const setRole = action({
  name: 'members role',
  summary: 'change the role of a member',
  effect: 'writes',
  positional: ['account', 'member', 'role'],
  input: z.object({ account: accountField(), member, role }),
  async run(parts, { account, member: id, role: given }) {
    const changed = { pool: parts.pool, notices: await parts.letters() }
    await changeRole(changed, actor(parts), account, id, given).catch(inWords(account))
    return { id, role: given }
  },
  lines: ({ id, role: given }) => [`Member ${id} now has the role ${given}.`],
})

const remove = action({
  name: 'members remove',
  summary: 'remove a member',
  effect: 'writes',
  positional: ['account', 'member'],
  input: z.object({
    account: accountField(),
    member,
    keys: field(
      'decision',
      'what becomes of their API keys: revoke, keep, or to:<member> (required if any work)',
      (text) => {
        const decision = keysDecisionIn(text)
        if (decision === null) throw new Error(`must be revoke, keep or to:<member>, and not ${JSON.stringify(text)}`)
        return decision
      },
    ).optional(),
  }),
  async run(parts, { account, member: id, keys = null }) {
    const removed = { pool: parts.pool, notices: await parts.letters() }
    await removeMember(removed, actor(parts), account, id, keys).catch(inWords(account))
    return { id }
  },
  lines: ({ id }) => [`Member ${id} removed.`],
})

const handOver = action({
  name: 'members transfer',
  summary: 'transfer ownership of an account to another member; the former owner becomes an admin',
  effect: 'writes',
  positional: ['account', 'from', 'to'],
  input: z.object({
    account: accountField(),
    from: idField('from', 'id of the owner'),
    to: idField('to', 'id of the member who becomes the owner'),
  }),
  async run(parts, { account, from, to }) {
    const changed = { pool: parts.pool, notices: await parts.letters() }
    await transfer(changed, actor(parts), account, { from, to }).catch(inWords(account))
    return { from, to }
  },
  lines: ({ from, to }) => [`Member ${to} is now the owner; ${from} is now an admin.`],
})

const invite = action({
  name: 'members invite',
  summary: 'invite an address by mail; it becomes a member when the invitation is accepted',
  effect: 'writes',
  positional: ['account', 'email', 'role'],
  input: z.object({ account: accountField(), email, role }),
  async run(parts, { account, ...invited }) {
    const { pool, ids, settings } = parts
    if (settings.siteUrl === undefined)
      throw new Error('http.site_url (FAREBOX_HTTP_SITE_URL) is missing: the link in the mail needs it')
    const letters = await parts.letters()
    if (letters === null) throw new Error('secrets.master_key (FAREBOX_SECRETS_MASTER_KEY) is missing: mail needs it')
    const { sendMail, siteUrl } = letters
    const invitations = createInvitations({
      pool,
      ids,
      sendMail,
      attempts: createAttempts({ pool }),
      settings: { siteUrl },
    })
    return { id: await invitations.invite(actor(parts), account, invited).catch(inWords(account)) }
  },
  lines: ({ id }) => [`Invitation ${id} is being sent. It is valid for 7 days.`],
})

function roleOf(text: string): Role {
  const found = ROLES.find((known) => known === text)
  if (found === undefined) throw new Error(`${JSON.stringify(text)} is not a role: use one of ${ROLES.join(', ')}`)
  return found
}

function emailOf(text: string): string {
  const address = readAddress(text)
  if (address === null) throw new Error(`${JSON.stringify(text)} is not an e-mail address`)
  return address
}

/** What is told to a member on a page is told here in the words of operators. */
function inWords(account: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof Fault)) throw error
    throw new Error(
      error.code === 'resource_not_found' ? `there is no such member or account: ${account}` : error.message,
    )
  }
}

export const members = [list, add, setRole, remove, handOver, invite]
