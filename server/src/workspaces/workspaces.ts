import { randomInt } from 'node:crypto'
import type pg from 'pg'
import { z } from 'zod'
import type { TierLimits } from '../catalogue/tiers.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { type Nanos, nanos } from '../kernel/money.ts'
import { type Rational, rational } from '../kernel/rational.ts'
import { type By, difference, record, SERVICE } from '../storage/audit.ts'
import { inTransaction, type Query, type Transactions } from '../storage/transaction.ts'
import { requireNotClosed } from './closures.ts'
import { personWith } from './person-with.ts'
import { TIER_COLUMNS, tierIn, tierRow } from './tier.ts'

type Parts = { readonly pool: Transactions; readonly ids: Ids }

export type Workspace = {
  readonly id: Id
  readonly liveAccountId: Id
  readonly testAccountId: Id
}

const SHARDS = 4_096

export type NewWorkspace = {
  readonly name: string
  /** Whose it is; somebody can be added later. */
  readonly ownerEmail?: string
}

/** Makes a workspace with its two accounts, empty. */
export function createWorkspace({ pool, ids }: Parts, by: By, { name, ownerEmail }: NewWorkspace): Promise<Workspace> {
  return inTransaction(pool, async (query) => {
    const email = ownerEmail?.toLowerCase()
    const owner = email === undefined ? undefined : { email, personId: await personWith(query, email) }
    return createWorkspaceWithin(query, ids, by, { name, owner })
  })
}

type Owned = {
  readonly name: string
  /** Nobody yet, somebody who has not signed up yet, or a person. */
  readonly owner: { readonly email: string; readonly personId: Id | null } | undefined
}

/** The same, together with whatever else its transaction does. */
export async function createWorkspaceWithin(
  query: Query,
  ids: Ids,
  by: By,
  { name, owner }: Owned,
): Promise<Workspace> {
  const workspace = { id: ids.next(), liveAccountId: ids.next(), testAccountId: ids.next() }
  const { id, liveAccountId, testAccountId } = workspace
  await query("insert into accounts (id, mode) values ($1, 'live'), ($2, 'test')", [liveAccountId, testAccountId])
  await query(
    'insert into workspaces (id, name, shard, live_account_id, test_account_id) values ($1, $2, $3, $4, $5)',
    [id, name, randomInt(SHARDS), liveAccountId, testAccountId],
  )
  if (owner !== undefined)
    await query("insert into members (id, workspace_id, email, role, person_id) values ($1, $2, $3, 'owner', $4)", [
      ids.next(),
      id,
      owner.email,
      owner.personId,
    ])
  const after = { name, liveAccountId, testAccountId }
  await record(query, by, { action: 'workspace.created', of: id, subject: id, before: null, after })
  return workspace
}

/** Its name as people see it, which whoever calls has checked. */
export async function renameWorkspace({ pool }: Pick<Parts, 'pool'>, by: By, id: Id, name: string): Promise<void> {
  await inTransaction(pool, async (query) => {
    const { rows } = await query('select name from workspaces where id = $1 for no key update', [id])
    const before = namedRow.optional().parse(rows[0])
    if (before === undefined) throw new Fault('resource_not_found', { detail: `There is no workspace ${id}.` })
    await requireNotClosed(query, id)
    await query('update workspaces set name = $2 where id = $1', [id, name])
    const changed = difference(before, { name })
    await record(query, by, { action: 'workspace.renamed', of: id, subject: id, ...changed })
    await tell(query, id)
  })
}

const namedRow = z.object({ name: z.string() })

export type TierGrant =
  | { readonly tier: 'growth' }
  /** By agreement: limits below what payments have earned change nothing. */
  | { readonly tier: 'enterprise'; readonly limits: TierLimits }
  /** Back to what the paid total earns. */
  | { readonly tier: 'earned' }

export async function grantTier({ pool }: Parts, by: By, workspaceId: Id, grant: TierGrant): Promise<void> {
  await inTransaction(pool, async (query) => {
    const changed = await grantTierWithin(query, workspaceId, grant)
    await record(query, by, { action: 'workspace.tier_granted', of: workspaceId, subject: workspaceId, ...changed })
  })
}

/** The same, together with whatever else its transaction does, which records what is given back. */
export async function grantTierWithin(
  query: Query,
  workspaceId: Id,
  grant: TierGrant,
): Promise<ReturnType<typeof difference>> {
  const limits = grant.tier === 'enterprise' ? grant.limits : null
  const { requestsPerMinute = null, tokensPerMinute = null, concurrency = null } = limits ?? {}
  const tier = grant.tier === 'earned' ? null : grant.tier
  const { plan: _, ...before } = await lockWorkspace(query, workspaceId)
  await query(
    'update workspaces set tier_granted = $2, requests_per_minute = $3, tokens_per_minute = $4, concurrency = $5 where id = $1',
    [workspaceId, tier, requestsPerMinute, tokensPerMinute, concurrency],
  )
  await tell(query, workspaceId)
  return difference(before, { tier, requestsPerMinute, tokensPerMinute, concurrency })
}

/** Puts a workspace on a customer plan, which must exist. */
export async function setCustomerPlan({ pool }: Parts, by: By, workspaceId: Id, plan: string): Promise<void> {
  await inTransaction(pool, async (query) => {
    const before = await lockWorkspace(query, workspaceId)
    await query('update workspaces set plan = $2 where id = $1', [workspaceId, plan])
    // Whoever changes the plan at the same time waits for us, and then tells this workspace as well.
    await query('select from plans where id = $1 for share', [plan])
    const changed = difference({ plan: before.plan }, { plan })
    await record(query, by, { action: 'workspace.plan_set', of: workspaceId, subject: workspaceId, ...changed })
    await tell(query, workspaceId)
  })
}

const planRows = z.array(z.object({ multiplier: z.string() }))

/** Makes a customer plan or changes what it pays; every workspace on it hears of it. */
export async function saveCustomerPlan(
  { pool, by = SERVICE }: Pick<Parts, 'pool'> & { readonly by?: By },
  plan: string,
  multiplier: Rational,
): Promise<void> {
  await inTransaction(pool, async (query) => {
    const { rows } = await query(
      "select numerator || '/' || denominator as multiplier from plans where id = $1 for no key update",
      [plan],
    )
    await query(
      'insert into plans (id, numerator, denominator) values ($1, $2, $3) on conflict (id) do update set numerator = $2, denominator = $3',
      [plan, multiplier.numerator, multiplier.denominator],
    )
    const after = { multiplier: `${multiplier.numerator}/${multiplier.denominator}` }
    await record(query, by, { action: 'plan.set', subject: plan, before: planRows.parse(rows)[0] ?? null, after })
    await query("select record_change(topic => 'workspace', key => id::text) from workspaces where plan = $1", [plan])
  })
}

const lockedWorkspace = z.object({
  tier: z.string().nullable(),
  requestsPerMinute: z.int().nullable(),
  tokensPerMinute: z.bigint().transform(Number).nullable(),
  concurrency: z.int().nullable(),
  plan: z.string(),
})

/** What can be changed of a workspace, which nobody else changes until we have ended. */
async function lockWorkspace(query: Query, id: Id): Promise<z.output<typeof lockedWorkspace>> {
  const { rows } = await query(
    `select tier_granted as tier, requests_per_minute as "requestsPerMinute", tokens_per_minute as "tokensPerMinute",
       concurrency, plan from workspaces where id = $1 for no key update`,
    [id],
  )
  if (rows[0] === undefined) throw new Fault('resource_not_found', { detail: `There is no workspace ${id}.` })
  await requireNotClosed(query, id)
  return lockedWorkspace.parse(rows[0])
}

async function tell(query: Query, id: Id): Promise<void> {
  await query("select record_change(topic => 'workspace', key => $1)", [id])
}

const workspaceRow = z.object({ id: z.string(), live_account_id: z.string(), test_account_id: z.string() }).transform(
  (row): Workspace => ({
    id: row.id,
    liveAccountId: row.live_account_id,
    testAccountId: row.test_account_id,
  }),
)

export async function findWorkspace(pool: pg.Pool, id: Id): Promise<Workspace> {
  const { rows } = await pool.query('select id, live_account_id, test_account_id from workspaces where id = $1', [id])
  if (rows[0] === undefined) throw new Fault('resource_not_found', { detail: `There is no workspace ${id}.` })
  return workspaceRow.parse(rows[0])
}

const moneyRows = z.array(z.object({ id: z.string(), live: z.bigint(), test: z.bigint() }))

/** What each of some workspaces has to spend, of either kind of money. */
export type WorkspaceMoney = Readonly<Record<Mode, Nanos>>

export async function moneyOfWorkspaces(pool: pg.Pool, ids: readonly Id[]): Promise<ReadonlyMap<Id, WorkspaceMoney>> {
  const { rows } = await pool.query(
    `select w.id, greatest(live.credited - live.charged - live.held, 0) as live, greatest(test.credited - test.charged - test.held, 0) as test
     from workspaces w join accounts live on live.id = w.live_account_id join accounts test on test.id = w.test_account_id
     where w.id = any ($1)`,
    [ids],
  )
  return new Map(moneyRows.parse(rows).map(({ id, live, test }) => [id, { live: nanos(live), test: nanos(test) }]))
}

const listedRow = tierRow
  .extend({
    id: z.string(),
    name: z.string(),
    created_at: z.date(),
    plan: z.string(),
    suspended_at: z.date().nullable(),
    suspended_reason: z.string().nullable(),
    keys: z.int(),
    live_free: z.bigint(),
    live_debt: z.bigint(),
    test_free: z.bigint(),
    test_debt: z.bigint(),
    live_account_id: z.string(),
    test_account_id: z.string(),
  })
  .transform((row) => ({
    id: row.id,
    name: row.name,
    createdAt: row.created_at,
    plan: row.plan,
    suspendedAt: row.suspended_at,
    suspendedReason: row.suspended_reason,
    ...tierIn(row),
    /** Those that are not revoked. */
    keys: row.keys,
    live: { free: row.live_free, debt: row.live_debt },
    test: { free: row.test_free, debt: row.test_debt },
    liveAccountId: row.live_account_id,
    testAccountId: row.test_account_id,
  }))

export type ListedWorkspace = z.output<typeof listedRow>

const LISTED_SELECT = `select w.id, w.name, w.created_at, w.plan, w.suspended_at, w.suspended_reason, ${TIER_COLUMNS}, live.paid, w.live_account_id, w.test_account_id,
    (select count(*)::integer from api_keys k where k.workspace_id = w.id and k.revoked_at is null) as keys,
    live.credited + live.debt - live.charged - live.held as live_free, live.debt as live_debt,
    test.credited + test.debt - test.charged - test.held as test_free, test.debt as test_debt
  from workspaces w join accounts live on live.id = w.live_account_id join accounts test on test.id = w.test_account_id`

type Page = {
  /** What their names have in them; all where it is empty. */
  readonly name: string
  readonly after: Id | null
  readonly most: number
}

/** Those behind one of them, the newest first. */
export async function listWorkspaces(pool: pg.Pool, { name, after, most }: Page): Promise<readonly ListedWorkspace[]> {
  const { rows } = await pool.query(
    `${LISTED_SELECT} where ($1::uuid is null or w.id < $1) and position(lower($2) in lower(w.name)) > 0 order by w.id desc limit $3`,
    [after, name, most],
  )
  return z.array(listedRow).parse(rows)
}

export async function showWorkspace(pool: pg.Pool, id: Id): Promise<ListedWorkspace> {
  const { rows } = await pool.query(`${LISTED_SELECT} where w.id = $1`, [id])
  if (rows[0] === undefined) throw new Fault('resource_not_found', { detail: `There is no workspace ${id}.` })
  return listedRow.parse(rows[0])
}

const customerPlans = z.array(
  z
    .object({ id: z.string(), numerator: z.bigint(), denominator: z.bigint(), customers: z.int() })
    .transform(({ id, customers, ...row }) => ({
      id,
      customers,
      multiplier: rational(row.numerator, row.denominator),
    })),
)

const PLANS_MOST = 1_000

/** With what each of them pays, and how many workspaces are on it. */
export async function listCustomerPlans(pool: pg.Pool): Promise<z.output<typeof customerPlans>> {
  const { rows } = await pool.query(
    `select p.id, p.numerator, p.denominator, (select count(*)::integer from workspaces w where w.plan = p.id) as customers
     from plans p order by p.id limit $1`,
    [PLANS_MOST],
  )
  return customerPlans.parse(rows)
}
