import type pg from 'pg'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { setBudget } from '../../server/src/budgets/set-budgets.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { makeQuotaRequest } from '../../server/src/people/quota-requests.ts'
import { newToken } from '../../server/src/people/tokens.ts'
import { askClosure } from '../../server/src/workspaces/closures.ts'
import { askExport, findExport } from '../../server/src/workspaces/exports.ts'
import { call, makeCustomer, makeKey } from '../acceptance/installation.ts'
import { linkAccount } from '../acceptance/links/linking.ts'
import { ACTOR, ids } from '../identity/customers.ts'
import { makeMember } from '../identity/granted.ts'
import { type Asker, ask, type House, MEMBER, type Team } from './house.ts'

/** A request that whoever may make it makes with success, once. */
export type Sample = {
  /** Another one than the team's, for what would be in the way of the others. */
  readonly workspaceId?: Id
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

type World = { readonly house: House; readonly team: Team /** Who will ask. */; readonly asker: Asker }
type Make = (world: World) => Promise<Sample>

const TEST = '?mode=test'
const TICKET = {
  isTicket: true,
  budget: { period: 'total', amount: usd('5') },
  expiresAt: new Date(Date.now() + 86_400_000),
} as const
const nothing: Make = async () => ({})
const inTest: Make = async () => ({ query: TEST })

async function key({ house, team, asker }: World): Promise<Readonly<Record<string, string>>> {
  return { key_id: (await makeKey(house.pool, team.workspaceId, { memberId: asker.memberId })).keyId }
}

async function budget({ house: { pool }, team }: World): Promise<Readonly<Record<string, string>>> {
  const { id } = await setBudget({ pool }, MEMBER, {
    ...{ workspaceId: team.workspaceId, mode: 'test', kind: 'tag', subject: 'team=search', label: 'team=search' },
    budget: { period: 'month', amount: usd('5') },
  })
  return { budget_id: id }
}

async function invitation({ house: { pool }, team }: World): Promise<Readonly<Record<string, string>>> {
  const id = ids.next()
  await pool.query(
    `insert into invitations (id, hash, workspace_id, email, role, expires_at)
     values ($1, $4, $2, $3, 'viewer', clock_timestamp() + interval '1 day')`,
    [id, team.workspaceId, `guest-${id}@harbour.example`, newToken().hash],
  )
  return { invitation_id: id }
}

async function quotaRequest({ house: { pool }, team, asker }: World): Promise<Readonly<Record<string, string>>> {
  await closeQuota(pool, team)
  const parts = { pool, ids, sendMail: async () => {}, operatorMail: null, siteUrl: 'https://site.example' }
  const { id } = await makeQuotaRequest(parts, ACTOR, {
    ...{ workspaceId: team.workspaceId, personId: asker.personId, requestsPerMinute: 100, tokensPerMinute: 1_000 },
    ...{ targets: ['rerank'], useCase: 'A test.' },
  })
  return { quota_request_id: id }
}

/** Long ago, so that neither the one that is open nor those of the day count. */
const closeQuota = (pool: pg.Pool, { workspaceId }: Team) =>
  pool.query(
    `update quota_requests set state = case state when 'open' then 'withdrawn' else state end,
       created_at = clock_timestamp() - interval '2 days', decided_at = coalesce(decided_at, clock_timestamp()) where workspace_id = $1`,
    [workspaceId],
  )

const member = async ({ house, team }: World) => ({
  member_id: (await makeMember(house.pool, team.workspaceId, 'viewer')).memberId,
})

/** What is read first, as whoever changes something has to; that anybody may who is a member. */
async function matching({ house, asker }: World, path: string): Promise<Readonly<Record<string, string>>> {
  const told = await ask(house.siteUrl, asker, path)
  return { 'if-match': told.headers.get('etag') ?? '*' }
}

/** Not of today, so that those of the day do not count; and one that can be downloaded. */
async function exported({ house: { pool }, team, asker }: World): Promise<Readonly<Record<string, string>>> {
  const { id } = await askExport({ pool, ids }, ACTOR, {
    ...{ workspaceId: team.workspaceId, personId: asker.personId, mode: null },
  })
  await pool.query("update exports set as_of = as_of - interval '2 days' where workspace_id = $1", [team.workspaceId])
  const ready = async () =>
    (await findExport(pool, { workspaceId: team.workspaceId, mode: null, id })).state === 'ready'
  await until(ready, PATIENCE_MS, 'the export')
  return { export_id: id }
}

/** A workspace of its own, where whoever asks has the same role; with the ETag of how its closure stands. */
async function apart({ house, asker }: World, isClosing: boolean): Promise<Sample> {
  const { pool, siteUrl } = house
  const { workspaceId } = await makeCustomer(pool)
  await pool.query(
    `insert into members (id, workspace_id, email, role, person_id)
     select $1, $2, email, role, person_id from members where id = $3`,
    [ids.next(), workspaceId, asker.memberId],
  )
  const parts = { pool, ids, sendMail: async () => {}, siteUrl }
  if (isClosing) await askClosure(parts, ACTOR, { workspaceId, personId: asker.personId })
  const told = await ask(siteUrl, asker, `/workspaces/${workspaceId}/closure`)
  return { workspaceId, headers: { 'if-match': told.headers.get('etag') ?? '' } }
}

/** One for every route, by its operation. */
export const SAMPLES: Readonly<Record<string, Make>> = {
  get_document: nothing,
  get_me: nothing,
  list_workspaces: nothing,
  create_workspace: async () => ({ body: { name: 'One more' } }),
  get_workspace: nothing,
  update_workspace: async (world) => ({
    headers: await matching(world, `/workspaces/${world.team.workspaceId}`),
    body: { name: `Renamed ${world.asker.memberId.slice(-6)}` },
  }),
  list_keys: inTest,
  create_key: async () => ({ query: TEST, body: { name: 'made by a member', scopes: ['rerank'] } }),
  list_key_states: async (world) => ({ query: `${TEST}&keys=${(await key(world)).key_id}` }),
  get_key: async (world) => ({ params: await key(world) }),
  update_key: async (world) => {
    const params = await key(world)
    const path = `/workspaces/${world.team.workspaceId}/keys/${params.key_id}`
    return { params, headers: await matching(world, path), body: { rates: { requests_per_minute: 7 } } }
  },
  rotate_key: async (world) => ({ params: await key(world), body: { overlap_seconds: 60 } }),
  revoke_key: async (world) => ({ params: await key(world) }),
  revoke_secret: async ({ house, team }) => ({
    body: { secret: (await makeKey(house.pool, team.workspaceId)).secret },
  }),
  read_ticket: async ({ house, team }) => ({
    body: { secret: (await makeKey(house.pool, team.workspaceId, TICKET)).secret },
  }),
  get_balance: inTest,
  get_statement: inTest,
  get_usage: async () => ({ query: `${TEST}&start=2026-01-01T00:00:00Z&group_by=key` }),
  list_requests: inTest,
  watch_requests: async () => ({ query: `${TEST}&seconds=1` }),
  get_request: async ({ house, team }) => ({
    query: TEST,
    params: { request_id: (await call(house.gateway.url, team.secret, 'tag_detail')).id },
  }),
  list_tasks: inTest,
  list_budgets: inTest,
  set_budget: async () => ({ query: TEST, body: { period: 'day', amount_usd: '12.50', tag: 'team=ads' } }),
  get_budget: async (world) => ({ params: await budget(world) }),
  update_budget: async (world) => {
    const params = await budget(world)
    const path = `/workspaces/${world.team.workspaceId}/budgets/${params.budget_id}`
    return { params, headers: await matching(world, path), body: { amount_usd: '6' } }
  },
  remove_budget: async (world) => ({ params: await budget(world) }),
  list_members: nothing,
  get_member: async (world) => ({ params: await member(world) }),
  update_member: async (world) => {
    const params = await member(world)
    const path = `/workspaces/${world.team.workspaceId}/members/${params.member_id}`
    return { params, headers: await matching(world, path), body: { role: 'developer' } }
  },
  remove_member: async ({ asker }) => ({ params: { member_id: asker.memberId } }),
  transfer_workspace: async (world) => ({ body: await member(world) }),
  list_invitations: nothing,
  create_invitation: async () => ({ body: { email: `guest-${ids.next()}@harbour.example`, role: 'viewer' } }),
  revoke_invitation: async (world) => ({ params: await invitation(world) }),
  list_links: inTest,
  remove_link: async ({ house, team }) => {
    const { keyId, secret } = await makeKey(house.pool, team.workspaceId)
    await linkAccount(house.gateway.url, secret)
    const { rows } = await house.pool.query<{ id: string }>('select id from link_sessions where credential_id = $1', [
      keyId,
    ])
    return { params: { key_id: keyId, link_id: rows[0]?.id ?? '' } }
  },
  list_audit: nothing,
  list_quota_requests: nothing,
  create_quota_request: async ({ house, team }) => {
    await closeQuota(house.pool, team)
    return {
      body: { requests_per_minute: 6_000, tokens_per_minute: 9_000_000, targets: ['rerank'], use_case: 'Search.' },
    }
  },
  get_quota_request: async (world) => ({ params: await quotaRequest(world) }),
  withdraw_quota_request: async (world) => ({ params: await quotaRequest(world) }),
  list_webhooks: nothing,
  create_export: nothing,
  list_exports: nothing,
  get_export: async (world) => ({ params: await exported(world) }),
  download_export: async (world) => ({ params: await exported(world) }),
  get_closure: nothing,
  ask_closure: async (world) => ({ ...(await apart(world, false)), body: { name: 'Customer' } }),
  cancel_closure: (world) => apart(world, true),
}
