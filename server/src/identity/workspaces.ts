import { randomInt } from 'node:crypto'
import type pg from 'pg'
import { z } from 'zod'
import type { TierLimits } from '../catalogue/tiers.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import type { Rational } from '../kernel/rational.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { type Actor, record } from './audit.ts'

type Parts = { readonly pool: pg.Pool; readonly ids: Ids }

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
export async function createWorkspace(
  { pool, ids }: Parts,
  actor: Actor,
  { name, ownerEmail }: NewWorkspace,
): Promise<Workspace> {
  const workspace = { id: ids.next(), liveAccountId: ids.next(), testAccountId: ids.next() }
  const { id, liveAccountId, testAccountId } = workspace
  await inTransaction(pool, async (query) => {
    await query("insert into accounts (id, mode) values ($1, 'live'), ($2, 'test')", [liveAccountId, testAccountId])
    await query(
      'insert into workspaces (id, name, shard, live_account_id, test_account_id) values ($1, $2, $3, $4, $5)',
      [id, name, randomInt(SHARDS), liveAccountId, testAccountId],
    )
    if (ownerEmail !== undefined)
      await query("insert into members (id, workspace_id, email, role) values ($1, $2, $3, 'owner')", [
        ids.next(),
        id,
        ownerEmail.toLowerCase(),
      ])
    await record(query, ids, { actor, action: 'workspace.created', workspaceId: id, subject: id })
  })
  return workspace
}

export type TierGrant =
  | { readonly tier: 'growth' }
  /** By agreement, with limits of its own. */
  | { readonly tier: 'enterprise'; readonly limits: TierLimits }
  /** Back to what the paid total earns. */
  | { readonly tier: 'earned' }

export async function grantTier({ pool, ids }: Parts, actor: Actor, workspaceId: Id, grant: TierGrant): Promise<void> {
  const limits = grant.tier === 'enterprise' ? grant.limits : null
  await changeWorkspace(
    pool,
    workspaceId,
    'tier_granted = $2, requests_per_minute = $3, tokens_per_minute = $4, concurrency = $5',
    [
      grant.tier === 'earned' ? null : grant.tier,
      limits?.requestsPerMinute ?? null,
      limits?.tokensPerMinute ?? null,
      limits?.concurrency ?? null,
    ],
    (query) =>
      record(query, ids, {
        actor,
        action: 'workspace.tier_granted',
        workspaceId,
        subject: workspaceId,
        detail: { tier: grant.tier, ...limits },
      }),
  )
}

/** Puts a workspace on a customer plan, which must exist. */
export async function setCustomerPlan(
  { pool, ids }: Parts,
  actor: Actor,
  workspaceId: Id,
  plan: string,
): Promise<void> {
  await changeWorkspace(pool, workspaceId, 'plan = $2', [plan], async (query) => {
    // Whoever changes the plan at the same time waits for us, and then tells this workspace as well.
    await query('select from plans where id = $1 for share', [plan])
    await record(query, ids, {
      actor,
      action: 'workspace.plan_set',
      workspaceId,
      subject: workspaceId,
      detail: { plan },
    })
  })
}

/** Makes a customer plan or changes what it pays; every workspace on it hears of it. */
export async function saveCustomerPlan(
  { pool }: Pick<Parts, 'pool'>,
  plan: string,
  multiplier: Rational,
): Promise<void> {
  await inTransaction(pool, async (query) => {
    await query(
      'insert into plans (id, numerator, denominator) values ($1, $2, $3) on conflict (id) do update set numerator = $2, denominator = $3',
      [plan, multiplier.numerator, multiplier.denominator],
    )
    await query("select record_change(topic => 'workspace', key => id::text) from workspaces where plan = $1", [plan])
  })
}

async function changeWorkspace(
  pool: pg.Pool,
  workspaceId: Id,
  assignments: string,
  values: readonly unknown[],
  alsoDo: (query: Query) => Promise<void>,
): Promise<void> {
  await inTransaction(pool, async (query) => {
    const { rowCount } = await query(`update workspaces set ${assignments} where id = $1`, [workspaceId, ...values])
    if (rowCount === 0) throw new Fault('resource_not_found', { detail: `There is no workspace ${workspaceId}.` })
    await alsoDo(query)
    await query("select record_change(topic => 'workspace', key => $1)", [workspaceId])
  })
}

const workspaceRow = z.object({ id: z.string(), live_account_id: z.string(), test_account_id: z.string() }).transform(
  (row): Workspace => ({
    id: row.id,
    liveAccountId: row.live_account_id,
    testAccountId: row.test_account_id,
  }),
)

/** Whose money an account has. */
export async function workspaceOfAccount(query: Query, accountId: Id): Promise<Id> {
  const { rows } = await query('select id from workspaces where live_account_id = $1 or test_account_id = $1', [
    accountId,
  ])
  if (rows[0] === undefined) throw new Error(`account ${accountId} belongs to no workspace`)
  return workspaceIds.parse(rows)[0].id
}

const workspaceIds = z.tuple([z.object({ id: z.string() })])

export async function findWorkspace(pool: pg.Pool, id: Id): Promise<Workspace> {
  const { rows } = await pool.query('select id, live_account_id, test_account_id from workspaces where id = $1', [id])
  if (rows[0] === undefined) throw new Fault('resource_not_found', { detail: `There is no workspace ${id}.` })
  return workspaceRow.parse(rows[0])
}
