import type pg from 'pg'
import { z } from 'zod'
import { revokeGrantsWithin } from '../grants/grants.ts'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import { ROLES, type Role } from '../kernel/role.ts'
import { difference, record } from '../storage/audit.ts'
import { inTransaction, OpenTransaction, type Query, queryOn, type Transactions } from '../storage/transaction.ts'
import { findClosure } from '../workspaces/closures.ts'
import { personWith } from '../workspaces/person-with.ts'
import type { Workspace } from '../workspaces/workspaces.ts'
import { decideKeys, type KeysDecision } from './member-keys.ts'
import { readName } from './names.ts'
import { type Notices, tellOfAdmin, tellOfRemoval } from './owner-notices.ts'
import type { PeopleParts } from './parts.ts'
import { byPerson, type Visitor } from './visitor.ts'
import { ownWorkspace } from './welcome.ts'
import { type Actor, type Locked, revokeBeyond, withWorkspace } from './workspace-lock.ts'

/** Members of workspaces: who they are, which role they have, and how that ends. A workspace that has an owner keeps one. */

/** Workspaces that one person may be the owner of. */
const WORKSPACES_OF_OWNER = 20
/** Members and open invitations of one workspace. */
export const MEMBERS_OF_WORKSPACE = 500

const role = z.enum(ROLES)

const member = z
  .object({
    id: z.string(),
    person_id: z.string().nullable(),
    email: z.string(),
    name: z.string().nullable(),
    role,
    created_at: z.date(),
    has_second_factor: z.boolean(),
  })
  .transform(({ person_id: personId, created_at: createdAt, has_second_factor: hasSecondFactor, ...row }) => ({
    ...{ ...row, personId, createdAt, hasSecondFactor },
  }))

/** Without a person while nobody has signed up with the address. */
export type Member = Readonly<z.output<typeof member>>

export async function membersOf(on: Transactions, workspaceId: Id): Promise<readonly Member[]> {
  const { rows } = await queryOn(on)(
    `select members.id, person_id, members.email, people.name, role, members.created_at,
       totp_since is not null as has_second_factor
     from members left join people on people.id = person_id where workspace_id = $1 order by members.id limit $2`,
    [workspaceId, MEMBERS_OF_WORKSPACE],
  )
  return z.array(member).parse(rows)
}

const personOf = z.object({ id: z.string(), person_id: z.string() })

/** The memberships of a workspace, by their people. */
export async function memberIdsOf(on: Transactions, workspaceId: Id): Promise<ReadonlyMap<Id, Id>> {
  const { rows } = await queryOn(on)(
    'select id, person_id from members where workspace_id = $1 and person_id is not null limit $2',
    [workspaceId, MEMBERS_OF_WORKSPACE],
  )
  return new Map(
    z
      .array(personOf)
      .parse(rows)
      .map(({ id, person_id: personId }) => [personId, id]),
  )
}

const membership = z
  .object({
    id: z.string(),
    name: z.string(),
    member_id: z.string(),
    role,
    is_last_owner: z.boolean(),
    suspended_at: z.date().nullable(),
    suspended_reason: z.string().nullable(),
  })
  .transform((row) => ({
    id: row.id,
    name: row.name,
    role: row.role,
    memberId: row.member_id,
    isLastOwner: row.is_last_owner,
    /** Since when an operator has suspended it, and why; null where none has. */
    suspension: row.suspended_at === null ? null : { since: row.suspended_at, reason: row.suspended_reason ?? '' },
  }))

export type Membership = Readonly<z.output<typeof membership>>

/** The workspaces of a person, with the role that they have there. */
export async function workspacesOf(pool: pg.Pool, personId: Id): Promise<readonly Membership[]> {
  const { rows } = await pool.query(
    `select workspaces.id, workspaces.name, workspaces.suspended_at, workspaces.suspended_reason, own.id as member_id, own.role, own.role = 'owner' and not exists (
       select from members other where other.workspace_id = own.workspace_id and other.role = 'owner'
         and other.person_id is not null and other.id <> own.id) as is_last_owner
     from members own join workspaces on workspaces.id = own.workspace_id
     where own.person_id = $1 order by workspaces.id limit 1000`,
    [personId],
  )
  return z.array(membership).parse(rows)
}

const owner = z.object({ email: z.string(), owned: z.int(), belongs: z.boolean() })

/** Another workspace, of which the person is the owner. */
export function foundWorkspace(
  parts: Pick<PeopleParts, 'ids' | 'credit' | 'testCredit' | 'settings'>,
  personId: Id,
  typed: string,
  visitor: Visitor,
  on: Transactions,
): Promise<Workspace> {
  const name = readName(typed)
  return inTransaction(on, async (query) => {
    // Locked, so that two at once count each other.
    const { rows } = await query(
      `select email, (select count(*)::integer from members where person_id = people.id and role = 'owner') as owned,
         exists (select from members where person_id = people.id) as belongs
       from people where id = $1 and verified_at is not null and erased_at is null for no key update`,
      [personId],
    )
    const person = owner.optional().parse(rows[0])
    if (person === undefined) throw new Fault('resource_not_found')
    if (person.owned >= WORKSPACES_OF_OWNER)
      throw new Fault('quota_exceeded', {
        detail: `You own ${person.owned} workspaces; the limit is ${WORKSPACES_OF_OWNER}. Use one of them.`,
      })
    const own = { person: { id: personId, email: person.email }, name, isFirst: !person.belongs }
    return ownWorkspace(query, parts, byPerson(personId, visitor), own)
  })
}

type Parts = { readonly pool: Transactions; readonly notices: Notices }

export function changeRole(
  { pool, notices }: Parts,
  actor: Actor,
  workspaceId: Id,
  memberId: Id,
  to: Role,
): Promise<void> {
  return withWorkspace(pool, workspaceId, actor, async (locked) => {
    const found = await findMember(locked, memberId)
    locked.requireChange(found.role, to)
    if (found.role === to) return
    await setRole(locked, found, to)
    await tellOfAdmin(locked.query, notices, { ...changeIn(locked), email: found.email, from: found.role, to })
  })
}

/** Who has keys that work goes only with a decision on them; null where there is none. */
export function removeMember(
  { pool, notices }: Parts,
  actor: Actor,
  workspaceId: Id,
  memberId: Id,
  keys: KeysDecision | null,
): Promise<void> {
  return withWorkspace(pool, workspaceId, actor, async (locked) => {
    const found = await findMember(locked, memberId)
    // Anybody may go.
    if (found.person_id === null || found.person_id !== locked.personId) {
      locked.requireChange(found.role, null)
      if (found.role === 'owner') await requireOwnersStay(locked)
    }
    await remove(locked, notices, found, { action: 'member.removed', keys })
  })
}

/** A person goes by themselves. */
export function leave(
  { pool, notices }: Parts,
  actor: Actor & { readonly personId: Id },
  workspaceId: Id,
  keys: KeysDecision | null,
): Promise<void> {
  return withWorkspace(pool, workspaceId, actor, async (locked) => {
    const { rows } = await locked.query('select id from members where workspace_id = $1 and person_id = $2', [
      workspaceId,
      actor.personId,
    ])
    const { id } = z.object({ id: z.string() }).parse(rows[0])
    await remove(locked, notices, await findMember(locked, id), { action: 'member.left', keys })
  })
}

type Transfer = { readonly from: Id; readonly to: Id }

/** An owner makes another member one, and is an admin from then on: both, or neither. */
export function transfer(
  { pool, notices }: Parts,
  actor: Actor,
  workspaceId: Id,
  { from, to }: Transfer,
): Promise<void> {
  return withWorkspace(pool, workspaceId, actor, async (locked) => {
    const [giver, taker] = [await findMember(locked, from), await findMember(locked, to)]
    locked.requireChange('owner', 'owner')
    if (giver.role !== 'owner' || giver.id === taker.id || taker.person_id === null)
      throw invalidRequest('Ownership can be transferred only from an owner to another member who has signed up.')
    const { query, by } = locked
    await tellOfAdmin(query, notices, { ...changeIn(locked), email: taker.email, from: taker.role, to: 'owner' })
    await query("update members set role = 'owner' where id = $1", [taker.id])
    await query("update members set role = 'admin' where id = $1", [giver.id])
    await revokeBeyond(query, workspaceId, giver.person_id, 'admin')
    await record(query, by, {
      ...{ action: 'workspace.transferred', of: workspaceId, subject: workspaceId },
      before: { [giver.id]: giver.role, [taker.id]: taker.role },
      after: { [giver.id]: 'admin', [taker.id]: 'owner' },
    })
  })
}

/** The membership of the person who acts. */
export async function memberIdOf(pool: pg.Pool, workspaceId: Id, personId: Id): Promise<Id> {
  const { rows } = await pool.query('select id from members where workspace_id = $1 and person_id = $2', [
    workspaceId,
    personId,
  ])
  if (rows[0] === undefined) throw new Fault('resource_not_found')
  return z.object({ id: z.string() }).parse(rows[0]).id
}

type Named = { readonly email: string; readonly role: Role }

/** Enters somebody by address, for an operator: at once where a person has it, and otherwise once somebody has. */
export function addMember(
  { pool, ids, notices }: Parts & { readonly ids: Ids },
  actor: Actor,
  workspaceId: Id,
  { email, role: given }: Named,
): Promise<Id> {
  return withWorkspace(pool, workspaceId, actor, async (locked) => {
    locked.requireChange(null, given)
    const { query, by } = locked
    await requireRoom(query, workspaceId)
    const person = await personWith(query, email)
    const id = await enter(query, ids, { workspaceId, email, role: given, personId: person })
    if (id === null) throw new Fault('already_member')
    const after = { personId: person, role: given }
    await record(query, by, { action: 'member.added', of: workspaceId, subject: id, before: null, after })
    await tellOfAdmin(query, notices, { ...changeIn(locked), email, from: null, to: given })
    return id
  })
}

type Entry = { readonly workspaceId: Id; readonly email: string; readonly role: Role; readonly personId: Id | null }

/** Null where the address or the person is a member already. */
export async function enter(query: Query, ids: Ids, entry: Entry): Promise<Id | null> {
  const id = ids.next()
  const { rowCount } = await query(
    'insert into members (id, workspace_id, email, role, person_id) values ($1, $2, $3, $4, $5) on conflict do nothing',
    [id, entry.workspaceId, entry.email, entry.role, entry.personId],
  )
  return rowCount === 1 ? id : null
}

export async function requireRoom(query: Query, workspaceId: Id): Promise<void> {
  const { rows } = await query(
    `select (select count(*) from members where workspace_id = $1) + (select count(*) from invitations
       where workspace_id = $1 and decided_at is null and expires_at > clock_timestamp()) >= $2 as is_full`,
    [workspaceId, MEMBERS_OF_WORKSPACE],
  )
  if (rows[0]?.is_full !== false) throw new Fault('members_full', { detail: `The limit is ${MEMBERS_OF_WORKSPACE}.` })
}

/** Where something changes, and who changes it. */
function changeIn({ workspaceId, name, personId }: Locked) {
  return { workspace: { id: workspaceId, name }, personId }
}

const found = z.object({ id: z.string(), person_id: z.string().nullable(), email: z.string(), role })
type Found = z.output<typeof found>

async function findMember({ query, workspaceId }: Locked, id: Id): Promise<Found> {
  const { rows } = await query(
    'select id, person_id, email, role from members where id = $1 and workspace_id = $2 for no key update',
    [id, workspaceId],
  )
  if (rows[0] === undefined)
    throw new Fault('resource_not_found', { detail: 'The workspace has no such member. Check the id.' })
  return found.parse(rows[0])
}

/** Any owner can cancel a closure. So none of them is put out by another one while it can be. */
async function requireOwnersStay({ query, workspaceId, personId }: Locked): Promise<void> {
  if (personId === null || (await findClosure(new OpenTransaction(query), workspaceId)) === null) return
  throw new Fault('workspace_closing', {
    detail:
      'The workspace is being closed, and any owner may cancel that. Owners can not be removed or demoted meanwhile.',
  })
}

async function setRole(locked: Locked, { id, person_id: personId, role: from }: Found, to: Role): Promise<void> {
  const { query, by, workspaceId } = locked
  if (from === 'owner') {
    await requireAnotherOwner(locked, { id, personId })
    await requireOwnersStay(locked)
  }
  await query('update members set role = $2 where id = $1', [id, to])
  await revokeBeyond(query, workspaceId, personId, to)
  const grants = personId === null ? [] : await revokeGrantsWithin(query, { personId, workspaceId, role: to })
  const change = difference({ role: from, ...factsOf(grants) }, { role: to })
  await record(query, by, { action: 'member.role_changed', of: workspaceId, subject: id, ...change })
}

type Removal = { readonly action: `member.${string}`; readonly keys: KeysDecision | null }

async function remove(locked: Locked, notices: Notices, { id, email, ...found }: Found, removal: Removal) {
  const { query, by, workspaceId } = locked
  const { person_id: personId, role: from } = found
  if (from === 'owner') await requireAnotherOwner(locked, { id, personId })
  const going = { memberId: id, role: from, isOwn: personId !== null && personId === locked.personId }
  const { became, keys, to } = await decideKeys(locked, going, removal.keys)
  await query('delete from members where id = $1', [id])
  await revokeBeyond(query, workspaceId, personId, null)
  // What clients do for somebody ends with their membership.
  const grants = personId === null ? [] : await revokeGrantsWithin(query, { personId, workspaceId })
  const ofKeys = became === null ? {} : { keys: { [became]: keys, ...(to !== undefined && { to }) } }
  const before = { personId, role: from, ...factsOf(grants), ...ofKeys }
  await record(query, by, { action: removal.action, of: workspaceId, subject: id, before, after: null })
  await tellOfRemoval(query, notices, { ...changeIn(locked), email, keys: keys.length, became })
}

/** Grants that ended with it, for the audit log. */
function factsOf(grants: readonly Id[]) {
  return grants.length === 0 ? {} : { grants }
}

type Owner = { readonly id: Id; readonly personId: Id | null }

/** Who has not signed up yet can look after nothing, and does not count for one who can. */
async function requireAnotherOwner({ query, workspaceId }: Locked, { id, personId }: Owner): Promise<void> {
  const { rows } = await query(
    `select from members where workspace_id = $1 and role = 'owner' and id <> $2 and (person_id is not null or $3::uuid is null) limit 1`,
    [workspaceId, id, personId],
  )
  if (rows.length === 0) throw new Fault('last_owner')
}
