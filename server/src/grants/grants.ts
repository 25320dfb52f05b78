import type pg from 'pg'
import { z } from 'zod'
import { BUDGET_ROW, type Budget, budgetFacts, budgetIn, makeAllowance } from '../budgets/budgets.ts'
import { requireGrantPlace } from '../identity/key-places.ts'
import {
  changed,
  NO_TERMS,
  TERMS_COLUMNS,
  TERMS_ROW,
  TERMS_SELECT,
  type TermsChange,
  termsFacts,
  termsIn,
  termsPlaces,
  termsValues,
} from '../identity/key-terms.ts'
import { expiryFacts, noSuchThing, tell } from '../identity/locked-key.ts'
import { ASKS_NOTHING, ASKS_ROW, ASKS_SELECT, type Asks, asksFacts, asksIn } from '../identity/mandate-terms.ts'
import { audienceOf, isOAuthScope, mayGive, type OAuthScope } from '../identity/resources.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { ROLES, type Role } from '../kernel/role.ts'
import { type By, type Change, difference, record } from '../storage/audit.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { requireUnstopped } from '../workspaces/stops.ts'
import { findLocked, lockGrant, setBudgetWithin } from './locked-grant.ts'
import { requireUnblocked } from './unblocked.ts'

/**
 * A grant: a person lets a client act for a workspace. It is a credential as a key is, with the same id space, and spends what its
 * budget says; without one it can't pay.
 */

type Parts = { readonly pool: pg.Pool; readonly ids: Ids }

export type NewGrant = {
  readonly workspaceId: Id
  readonly mode: Mode
  /** Who consents: a member whose role may give what the scopes say. */
  readonly personId: Id
  readonly clientId: string
  readonly clientName: string
  readonly audiences: readonly string[]
  readonly scopes: readonly OAuthScope[]
  /** Without one the grant can't pay. */
  readonly budget?: Budget
  readonly expiresAt?: Date
  readonly terms?: TermsChange
  /** What the person is asked for beside them, call by call; of nothing where it is left out. */
  readonly asks?: Asks
  /** Whether it takes the place of all that the person allows this client at the same resources already. */
  readonly replacesOthers?: boolean
}

/** What access tokens are made of: `makeAccessToken(id, shard)`. */
export type MadeGrant = { readonly id: Id; readonly shard: number }

/** Active grants of one workspace. */
export const GRANTS_OF_WORKSPACE = 200
/** Active grants that one person gave, so that a page shows them all. */
export const GRANTS_OF_PERSON = 500

export function makeGrant({ pool, ids }: Parts, by: By, grant: NewGrant): Promise<MadeGrant> {
  return inTransaction(pool, (query) => makeGrantWithin(query, ids, by, grant))
}

/** The same, together with whatever else its transaction does. */
export async function makeGrantWithin(query: Query, ids: Ids, by: By, grant: NewGrant): Promise<MadeGrant> {
  const { workspaceId, mode, personId, clientId, clientName, scopes, budget, expiresAt } = grant
  const audiences = [...new Set(grant.audiences.map(audienceOf))]
  const terms = changed(NO_TERMS, grant.terms ?? {})
  const asks = grant.asks ?? ASKS_NOTHING
  const id = ids.next()
  const { shard, accountId, role } = await lockForNewGrant(query, grant, async () => {
    if (grant.replacesOthers === true) await revokeOthers(query, by, { personId, clientId, audiences })
  })
  const refused = scopes.find((scope) => !mayGive(role, scope))
  if (refused !== undefined)
    throw new Fault('forbidden', {
      detail: `Your role is ${role}, which may not grant ${refused}. Ask an owner or admin.`,
    })
  if (budget !== undefined) await requireGrantPlace(query, accountId)
  await query('insert into credentials (id, account_id) values ($1, $2)', [id, accountId])
  const allowanceId = budget === undefined ? null : await makeAllowance(query, ids, accountId, budget)
  await query(
    `insert into grants (id, workspace_id, person_id, client_id, client_name, audiences, oauth_scopes, allowance_id, expires_at,
       call_limit, asks_high_cost, ${TERMS_COLUMNS})
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, ${termsPlaces(12)})`,
    [
      ...[id, workspaceId, personId, clientId, clientName, audiences, [...new Set(scopes)], allowanceId],
      ...[expiresAt ?? null, asks.callLimit, asks.asksHighCost, ...termsValues(terms)],
    ],
  )
  const after = {
    ...{ mode, personId, clientId, clientName, audiences, scopes },
    ...expiryFacts(expiresAt ?? null),
    ...budgetFacts(budget ?? null),
    ...(grant.terms !== undefined && { terms: termsFacts(terms) }),
    ...(grant.asks !== undefined && asksFacts(asks)),
  }
  await record(query, by, { action: 'grant.made', of: workspaceId, subject: id, before: null, after })
  await tell(query, id)
  return { id, shard }
}

/** Each leaves a row of its own, since they may be of several workspaces. */
async function revokeOthers(
  query: Query,
  by: By,
  whose: Pick<NewGrant, 'personId' | 'clientId' | 'audiences'>,
): Promise<void> {
  for (const id of await revokeGrantsWithin(query, whose)) await recordRevoked(query, by, id)
}

type Consent = Pick<NewGrant, 'workspaceId' | 'personId' | 'clientId' | 'mode'>

const consentRow = z.object({
  shard: z.int(),
  accountId: z.string(),
  role: z.enum(ROLES),
  grants: z.int(),
  own: z.int(),
})

/**
 * Locks the workspace and the person: whoever is removed from it, or sets another password, meanwhile either comes first or takes this
 * grant away with the others. What is done under the locks makes room for it.
 */
async function lockForNewGrant(query: Query, consent: Consent, makeRoom: () => Promise<void>) {
  const { workspaceId, personId, mode } = consent
  await query('select from workspaces where id = $1 for no key update', [workspaceId])
  await requireUnblocked(query, personId)
  await lockAccounts(query, consent)
  await makeRoom()
  const { rows } = await query(
    `select w.shard, case $3 when 'live' then w.live_account_id else w.test_account_id end as "accountId", m.role,
       (select count(*)::integer from grants where workspace_id = w.id and revoked_at is null
          and (expires_at is null or expires_at > clock_timestamp())) as grants,
       (select count(*)::integer from grants where person_id = $2 and revoked_at is null
          and (expires_at is null or expires_at > clock_timestamp())) as own
     from workspaces w join members m on m.workspace_id = w.id and m.person_id = $2 where w.id = $1`,
    [workspaceId, personId, mode],
  )
  // To who is no member, it is as if it were not there.
  if (rows[0] === undefined) throw noSuchThing('workspace', workspaceId)
  await requireUnstopped(query, workspaceId)
  const found = consentRow.parse(rows[0])
  requireFewer('The workspace has', found.grants, GRANTS_OF_WORKSPACE)
  requireFewer('You have', found.own, GRANTS_OF_PERSON)
  return found
}

/** That of the grant, and those whose grants it may replace: in one order, so that two consents of a person never wait for each other. */
async function lockAccounts(query: Query, { workspaceId, personId, clientId, mode }: Consent): Promise<void> {
  await query(
    `select from accounts where id in (
       select case $2 when 'live' then live_account_id else test_account_id end from workspaces where id = $1
       union select c.account_id from grants g join credentials c on c.id = g.id
       where g.person_id = $3 and g.client_id = $4 and g.revoked_at is null)
     order by id for no key update`,
    [workspaceId, mode, personId, clientId],
  )
}

function requireFewer(who: string, grants: number, most: number): void {
  if (grants < most) return
  const detail = `${who} ${grants} active grants; the limit is ${most}. Revoke one first.`
  throw new Fault('quota_exceeded', { detail })
}

/**
 * From its commit on, no paid call begins with any token of the grant, on any process: calls begin under the account's lock, and so is
 * this done. A second later its tokens are unknown everywhere. Revoking it again changes nothing.
 */
export async function revokeGrant({ pool }: Pick<Parts, 'pool'>, by: By, id: Id): Promise<void> {
  await inTransaction(pool, async (query) => {
    const { isRevoked } = await lockGrant(query, id)
    await endGrant(query, id)
    await record(query, by, { ...changeOf(id, 'revoked'), ...difference({ isRevoked }, { isRevoked: true }) })
  })
}

/**
 * The same for whoever may come twice with it: the first ends it and leaves a row, and does whatever `also` says in the same transaction.
 * False where it had ended before, or was never there.
 */
export function endGrantOnce(
  pool: pg.Pool,
  by: By,
  id: Id,
  also: (query: Query) => Promise<void> = async () => {},
): Promise<boolean> {
  return inTransaction(pool, async (query) => {
    const found = await findLocked(query, id)
    if (found === null || found.isRevoked) return false
    await endGrant(query, id)
    await recordRevoked(query, by, id)
    await also(query)
    return true
  })
}

function recordRevoked(query: Query, by: By, id: Id): Promise<unknown> {
  return record(query, by, { ...changeOf(id, 'revoked'), ...difference({ isRevoked: false }, { isRevoked: true }) })
}

async function endGrant(query: Query, id: Id): Promise<void> {
  await query('update credentials set active = false where id = $1', [id])
  // First the grant: who issues a token under it waits for that row, and finds it revoked.
  await query('update grants set revoked_at = coalesce(revoked_at, clock_timestamp()) where id = $1', [id])
  await query('delete from access_tokens where grant_id = $1', [id])
  await tell(query, id)
}

const ofPerson = z.array(z.object({ id: z.string(), accountId: z.string(), scopes: z.array(z.string()) }))

type Whose = {
  readonly personId: Id
  /** All of the person's where it is left out. */
  readonly workspaceId?: Id
  /** Of every client where it is left out. */
  readonly clientId?: string
  /** At any of these resources; at all of them where it is left out. */
  readonly audiences?: readonly string[]
  /** What the person is there from now on: grants that it may give stay. Null for nobody any more. */
  readonly role?: Role | null
}

/**
 * Revokes grants of a person with whatever takes them away, whose row in the audit log names them: leaving a workspace, a lesser role
 * there, another password, a grant in their place. Which those were.
 */
export async function revokeGrantsWithin(
  query: Query,
  { personId, workspaceId, clientId, audiences, role = null }: Whose,
): Promise<readonly Id[]> {
  const { rows } = await query(
    `select g.id, c.account_id as "accountId", g.oauth_scopes as scopes from grants g join credentials c on c.id = g.id
     where g.person_id = $1 and ($2::uuid is null or g.workspace_id = $2) and ($3::text is null or g.client_id = $3)
       and ($4::text[] is null or g.audiences && $4::text[]) and g.revoked_at is null order by g.id`,
    [personId, workspaceId ?? null, clientId ?? null, audiences ?? null],
  )
  return endAll(
    query,
    ofPerson.parse(rows).filter(({ scopes }) => !scopes.every((scope) => stays(role, scope))),
  )
}

/** All of a workspace, with whatever closes it, whose row in the audit log counts them. Which those were. */
export async function revokeGrantsOfWorkspace(query: Query, workspaceId: Id): Promise<readonly Id[]> {
  const { rows } = await query(
    `select g.id, c.account_id as "accountId", g.oauth_scopes as scopes from grants g join credentials c on c.id = g.id
     where g.workspace_id = $1 and g.revoked_at is null order by g.id`,
    [workspaceId],
  )
  return endAll(query, ofPerson.parse(rows))
}

type Ending = { readonly id: Id; readonly accountId: Id }

async function endAll(query: Query, ending: readonly Ending[]): Promise<readonly Id[]> {
  // In the order of their ids, as BEGIN locks them.
  for (const accountId of [...new Set(ending.map((grant) => grant.accountId))].sort())
    await query('select from accounts where id = $1 for no key update', [accountId])
  for (const { id } of ending) await endGrant(query, id)
  return ending.map(({ id }) => id)
}

function stays(role: Role | null, scope: string): boolean {
  return role !== null && isOAuthScope(scope) && mayGive(role, scope)
}

/**
 * Changes what a grant may spend. It takes effect at once, as what is spoken for already where that is more. What the old period's
 * allowance had left is taken away with it, so that a process that has not heard of the change yet can't spend it.
 */
export async function setGrantBudget({ pool, ids }: Parts, by: By, id: Id, budget: Budget | null): Promise<void> {
  await inTransaction(pool, async (query) => {
    const grant = await lockGrant(query, id)
    await setBudgetWithin(query, ids, grant, budget)
    const { budget: before } = grant
    await record(query, by, { ...changeOf(id, 'budget_set'), ...difference(budgetFacts(before), budgetFacts(budget)) })
    await tell(query, id)
  })
}

const listedGrant = z
  .object({
    id: z.string(),
    workspaceId: z.string(),
    personId: z.string(),
    clientId: z.string(),
    clientName: z.string(),
    mode: z.enum(['live', 'test']),
    shard: z.int(),
    audiences: z.array(z.string()),
    oauthScopes: z.array(z.string()),
    createdAt: z.date(),
    expiresAt: z.date().nullable(),
    revokedAt: z.date().nullable(),
    isActive: z.boolean(),
    allowanceId: z.string().nullable(),
    ...BUDGET_ROW,
    ...TERMS_ROW,
    ...ASKS_ROW,
  })
  .transform((row) => ({
    id: row.id,
    workspaceId: row.workspaceId,
    personId: row.personId,
    clientId: row.clientId,
    clientName: row.clientName,
    mode: row.mode,
    shard: row.shard,
    audiences: row.audiences,
    oauthScopes: row.oauthScopes.filter(isOAuthScope),
    createdAt: row.createdAt,
    expiresAt: row.expiresAt,
    revokedAt: row.revokedAt,
    /** Neither revoked nor expired, by PostgreSQL's clock. */
    isActive: row.isActive,
    allowanceId: row.allowanceId,
    budget: budgetIn(row),
    terms: termsIn(row),
    asks: asksIn(row),
    isPaused: row.is_paused,
  }))

export type ListedGrant = Readonly<z.output<typeof listedGrant>>

const LISTED = 1_000
const IS_ACTIVE = 'c.active and k.revoked_at is null and (k.expires_at is null or k.expires_at > clock_timestamp())'

const LISTED_SELECT = `select k.id, k.workspace_id as "workspaceId", k.person_id as "personId", k.client_id as "clientId",
    k.client_name as "clientName", a.mode, w.shard, k.audiences, k.oauth_scopes as "oauthScopes", k.created_at as "createdAt",
    k.expires_at as "expiresAt", k.revoked_at as "revokedAt", k.allowance_id as "allowanceId", b.period,
    coalesce(k.paused_amount, b.amount) as amount, ${TERMS_SELECT}, ${ASKS_SELECT},
    ${IS_ACTIVE} as "isActive"
  from grants k join credentials c on c.id = k.id join accounts a on a.id = c.account_id join workspaces w on w.id = k.workspace_id
  left join allowances b on b.id = k.allowance_id`

type Listed = { readonly personId?: Id | null; readonly workspaceId?: Id | null; readonly isActive?: boolean }

/** Of a person, of a workspace, or of both: the active first or alone, however many have ended; of those the newest first. */
export async function listGrants(
  pool: pg.Pool,
  { personId = null, workspaceId = null, isActive = false }: Listed,
): Promise<readonly ListedGrant[]> {
  const { rows } = await pool.query(
    `${LISTED_SELECT} where ($1::uuid is null or k.person_id = $1) and ($2::uuid is null or k.workspace_id = $2)
       and (not $4 or (${IS_ACTIVE})) order by "isActive" desc, k.id desc limit $3`,
    [personId, workspaceId, LISTED, isActive],
  )
  return z.array(listedGrant).parse(rows)
}

type GrantPage = {
  readonly workspaceId: Id
  /** Of the mode that is asked for. */
  readonly accountId: Id
  readonly after: Id | undefined
  readonly most: number
}

/** Of a workspace in one mode, also those that have ended, the newest first. */
export async function listGrantPage(
  pool: pg.Pool,
  { workspaceId, accountId, after, most }: GrantPage,
): Promise<readonly ListedGrant[]> {
  const { rows } = await pool.query(
    `${LISTED_SELECT} where k.workspace_id = $1 and c.account_id = $2 and ($3::uuid is null or k.id < $3) order by k.id desc limit $4`,
    [workspaceId, accountId, after ?? null, most],
  )
  return z.array(listedGrant).parse(rows)
}

/** What a person allows a client now, the newest first; so many at most. */
export async function listGrantsOfClient(
  pool: pg.Pool,
  { personId, clientId, most }: { readonly personId: Id; readonly clientId: string; readonly most: number },
): Promise<readonly ListedGrant[]> {
  const { rows } = await pool.query(
    `${LISTED_SELECT} where k.person_id = $1 and k.client_id = $2 and k.revoked_at is null
       and (k.expires_at is null or k.expires_at > clock_timestamp()) order by k.id desc limit $3`,
    [personId, clientId, most],
  )
  return z.array(listedGrant).parse(rows)
}

export async function findGrant(pool: pg.Pool, id: Id): Promise<ListedGrant | null> {
  const { rows } = await pool.query(`${LISTED_SELECT} where k.id = $1`, [id])
  return rows[0] === undefined ? null : listedGrant.parse(rows[0])
}

/** Whether a person has ever allowed a client. */
export async function hasAllowed(pool: pg.Pool, personId: Id, clientId: string): Promise<boolean> {
  const { rowCount } = await pool.query('select from grants where person_id = $1 and client_id = $2 limit 1', [
    personId,
    clientId,
  ])
  return rowCount === 1
}

/** Which of some clients have a grant that is active. */
export async function clientsWithGrants(pool: pg.Pool, clientIds: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query(
    `select distinct client_id as id from grants where client_id = any($1) and revoked_at is null
       and (expires_at is null or expires_at > clock_timestamp())`,
    [clientIds],
  )
  return new Set(
    z
      .array(z.object({ id: z.string() }))
      .parse(rows)
      .map(({ id }) => id),
  )
}

export function changeOf(id: Id, done: string): Pick<Change, 'action' | 'of' | 'subject'> {
  return { action: `grant.${done}`, of: id, subject: id }
}
