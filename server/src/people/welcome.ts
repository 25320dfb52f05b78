import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, ZERO } from '../kernel/money.ts'
import { type By, record } from '../storage/audit.ts'
import type { Query } from '../storage/transaction.ts'
import { lockAddress } from '../workspaces/person-with.ts'
import { createWorkspaceWithin, type Workspace } from '../workspaces/workspaces.ts'
import { mailboxHash } from './mailbox.ts'
import { hasInvitation, isOpenTo } from './open-to.ts'
import type { PeopleParts } from './parts.ts'

type Parts = Pick<PeopleParts, 'ids' | 'credit' | 'testCredit' | 'settings'>
type Person = { readonly id: Id; readonly email: string; readonly name: string }

/**
 * What somebody has once their address is known to be theirs: a workspace of their own with credit, unless a workspace has invited them,
 * and the memberships for which an operator had named the address. In the transaction that says that it is theirs, so that nobody is half welcome.
 */
export async function welcome(query: Query, parts: Parts, by: By, person: Person): Promise<void> {
  const { id, email, name } = person
  await record(query, by, { action: 'person.verified', subject: id, before: null, after: { isVerified: true } })
  if (!(await hasInvitation(query, { email })))
    await ownWorkspace(query, parts, by, { person, name: `${name}'s workspace`, isFirst: true })
  await joinAsNamed(query, by, person)
}

type Own = { readonly person: Pick<Person, 'id' | 'email'>; readonly name: string; readonly isFirst: boolean }

/** A workspace of theirs, with test money; with credit too, where they are in no other. */
export async function ownWorkspace(
  query: Query,
  parts: Parts,
  by: By,
  { person, name, isFirst }: Own,
): Promise<Workspace> {
  const owner = { email: person.email, personId: person.id }
  const workspace = await createWorkspaceWithin(query, parts.ids, by, { name, owner })
  await parts.testCredit(query, by, workspace.testAccountId)
  if (isFirst) await creditOnce(query, parts, by, { person, accountId: workspace.liveAccountId })
  return workspace
}

type Grant = { readonly person: Pick<Person, 'id' | 'email'>; readonly accountId: Id }

/** Once a mailbox, whoever signs up with it: who comes second at the same time waits for the first, and is given nothing. */
async function creditOnce(
  query: Query,
  { ids, credit, settings }: Parts,
  by: By,
  { person, accountId }: Grant,
): Promise<void> {
  const { credit: amount } = settings
  // Members could otherwise have credit for any mailbox that they invite, where the operator gives it to few or nobody.
  if (amount <= ZERO || !isOpenTo(settings, person.email)) return
  const { rowCount } = await query(
    'insert into sign_up_credits (mailbox, person_id) values ($1, $2) on conflict (mailbox) do nothing',
    [mailboxHash(person.email), person.id],
  )
  if (rowCount !== 1) return
  const creditId = ids.next()
  await credit(query, accountId, creditId, amount)
  const after = { usd: formatUsd(amount), kind: 'promotion', accountId, expiresAt: null }
  await record(query, by, { action: 'account.credited', of: accountId, subject: creditId, before: null, after })
}

const joined = z.array(z.object({ id: z.string(), workspace_id: z.string(), role: z.string() }))

async function joinAsNamed(query: Query, by: By, { id: personId, email }: Person): Promise<void> {
  await lockAddress(query, email)
  const { rows } = await query(
    'update members set person_id = $1 where email = $2 and person_id is null returning id, workspace_id, role',
    [personId, email],
  )
  for (const { id, workspace_id: of, role } of joined.parse(rows))
    await record(query, by, { action: 'member.joined', of, subject: id, before: null, after: { personId, role } })
  // Keys of who was named by the address alone are the person's from now on, whose budget may be set by either.
  await query(
    `with claimed as (update api_keys set member_person = $1 where member_email = $2 and member_person is null returning id)
     select record_change(topic => 'key', key => id::text) from claimed`,
    [personId, email],
  )
}
