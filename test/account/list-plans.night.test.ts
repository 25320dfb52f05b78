import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type pg from 'pg'
import { measure } from '../../harness/figures.ts'
import { count, recordProof, tellProgress } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { AccountParts } from '../../server/src/account/parts.ts'
import type { Given } from '../../server/src/account/route.ts'
import { ACCOUNT_ROUTES } from '../../server/src/account/routes.ts'
import { VIDEO_TASKS } from '../../server/src/gateway/plans/video-tasks.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { sessionsOfAccount } from '../../server/src/links/sessions.ts'
import { SERVICE } from '../../server/src/storage/audit.ts'
import { createTasks } from '../../server/src/tasks/tasks.ts'
import { nodesOf } from '../acceptance/plan-nodes.ts'
import { connect } from '../ledger/world.ts'
import { makeTeam } from './house.ts'

/**
 * The first page of every list, and a page of every filter that few match among very many: which rows PostgreSQL reads for it. Handlers are run as the
 * API runs them, and every statement that they send is explained. How long it takes is judged in proofs only.
 */
const PROOF = 'account-lists'
const KEYS = count({ full: 100_000, reduced: 6_000 })
const REQUESTS = count({ full: 10_000_000, reduced: 3_000 })
/** Of somebody else, in the same tables. */
const OTHERS = count({ full: 1_000_000, reduced: 60_000 })
const CHANGES = count({ full: 1_000_000, reduced: 12_000 })
const DAYS = count({ full: 25, reduced: 3 })
/** Days around the one in which a database is made have no index by account: they were there before it. */
const WITHOUT_INDEX = 3
/** Keys that are used; the others are there. */
const ACTIVE_KEYS = 100
const MOST_MS = 100

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

const team = await makeTeam(pool, ['owner', 'viewer'])
const neighbour = await makeTeam(pool, ['owner'])
const { rows: places } = await pool.query(
  `select w.id, w.name, live_account_id as "liveAccountId", test_account_id as "testAccountId", m.id as "memberId", m.role, null as "closesAt", null as "suspendedAt", null as "suspendedReason"
   from workspaces w join members m on m.workspace_id = w.id where w.id = $1 and m.role = 'owner'`,
  [team.workspaceId],
)
const place: NonNullable<Given['place']> = places[0]

/** No statement takes long, however many there are of all: each makes so many rows. */
const PORTION = 100_000
/** The first and the last of each portion, counted from 1. */
const portionsOf = (all: number) =>
  Array.from({ length: Math.ceil(all / PORTION) }, (_, at) => [at * PORTION + 1, Math.min(all, (at + 1) * PORTION)])

const startedMs = performance.now()
const bytesOfAll = async () =>
  Number((await pool.query('select pg_database_size(current_database()) as bytes')).rows[0].bytes)

/** Very many of an account, of which a fifth is active. The test account of the workspace has one. */
async function makeKeys(
  { workspaceId, accountId }: { readonly workspaceId: string; readonly accountId: string },
  of: number,
) {
  for (const range of portionsOf(of))
    await pool.query(
      `with made as (
         insert into credentials (id, account_id, active)
         select (lpad(to_hex(1700000000000 + n), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8' || substr(md5(n::text || $1::uuid::text), 1, 15))::uuid,
           $1::uuid, n % 5 = 0
         from generate_series($3::integer, $4::integer) n returning id, active)
       insert into api_keys (id, workspace_id, name, hash, revoked_at)
       select id, $2, 'one of many', sha256(id::text::bytea), case when not active then clock_timestamp() end from made`,
      [accountId, workspaceId, ...range],
    )
  tellProgress(`${of} keys`)
}

/** Of each day before that midnight as many, with the hours that they add up to. */
async function makeCharges(midnight: Date, accountId: string, of: number, keys: number) {
  const ofDay = Math.floor(of / DAYS)
  for (let day = 0; day < DAYS; day += 1) {
    const begins = new Date(midnight.getTime() - (day + 1 + WITHOUT_INDEX) * 86_400_000)
    for (const range of portionsOf(ofDay))
      await pool.query(
        `insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
           input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at,
           model, route, end_user, end_user_label, tags)
         select (lpad(to_hex(floor(at * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text || $1::uuid::text), 1, 19))::uuid, $1::uuid, key.id,
           'tag_detail', 'posted', 1000, 1000, 0, 0, 1000, 0, true, false, 1, 1, 0, 0, '{}', to_timestamp(at), to_timestamp(at),
           case when n % 1000 = 0 then 'rare' else 'model ' || n % 7 end, 'route', null, null, '{}'
         from generate_series($5::integer, $6::integer) n
         cross join lateral (select extract(epoch from $3::timestamptz)::float8 + n * 86399.0::float8 / $2::integer as at) moment
         join (select id, row_number() over (order by id) as place from credentials where account_id = $1 limit $4) key on key.place = 1 + n % $4`,
        [accountId, ofDay, begins, keys, ...range],
      )
    await pool.query(
      `insert into usage_tail (credential_id, at, account_id, operation, model, requests, failed_requests, input_tokens, output_tokens, cache_read_tokens,
         cache_write_tokens, value, charged)
       select credential_id, date_trunc('hour', ended_at, 'UTC'), account_id, operation, model, count(*), 0, sum(input_tokens), sum(output_tokens), 0, 0,
         sum(value), sum(amount)
       from charges where account_id = $1 and id >= first_id_at($2) and id < first_id_at($3) group by 1, 2, 3, 4, 5`,
      [accountId, begins, new Date(begins.getTime() + 86_400_000)],
    )
    await addUpUsage(pool)
    tellProgress(`${(day + 1) * ofDay} requests, ${await bytesOfAll()} bytes in all`)
  }
}

async function makeChanges(workspaceId: string, of: number) {
  for (const range of portionsOf(of))
    await pool.query(
      `insert into audit (actor, action, workspace_id, subject, before, after, origin, at)
       select 'operator test', case when n % 5000 = 0 then 'link.rare' else 'key.changed' end, $1, 'thing ' || n % 3000, null, null, '{}',
         clock_timestamp() - n * interval '1 second'
       from generate_series($2::integer, $3::integer) n`,
      [workspaceId, ...range],
    )
  tellProgress(`${of} changes`)
}

/** One table at a time, so that no statement takes as long as all of them do. */
async function cleanUp() {
  const { rows } = await pool.query<{ name: string }>(
    "select c.oid::regclass::text as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by c.oid",
  )
  for (const { name } of rows) await pool.query(`vacuum (analyze) ${name}`)
  // Of charges as a whole, too.
  await pool.query('analyze charges')
  tellProgress('statistics')
}

before(async () => {
  // Read once, so that days do not shift where another one begins meanwhile; and a constant, by which PostgreSQL leaves out the other days of charges.
  const { rows } = await pool.query<{ midnight: Date }>(
    "select date_trunc('day', clock_timestamp(), 'UTC') as midnight",
  )
  const midnight = rows[0]?.midnight ?? assert.fail()
  await pool.query(
    "select make_charge_partition(($2::timestamptz at time zone 'UTC')::date - day) from generate_series(1, $1::integer) day",
    [DAYS + WITHOUT_INDEX + 2, midnight],
  )
  const live = { workspaceId: place.id, accountId: place.liveAccountId }
  await makeKeys(live, KEYS)
  await makeKeys(neighbour, KEYS)
  await pool.query(
    `update api_keys set expires_at = clock_timestamp() - interval '1 day' where id in (
       select id from api_keys where workspace_id = $1 and revoked_at is null order by id limit 30)`,
    [place.id],
  )
  await pool.query(
    'update api_keys set member_id = $2 where id in (select id from api_keys where workspace_id = $1 order by id limit 30)',
    [place.id, place.memberId],
  )
  await makeCharges(midnight, place.liveAccountId, REQUESTS, ACTIVE_KEYS)
  await makeCharges(midnight, neighbour.accountId, OTHERS, 6 * ACTIVE_KEYS)
  await makeChanges(place.id, CHANGES)
  await makeChanges(neighbour.workspaceId, CHANGES)
  await pool.query(
    `insert into entries (id, account_id, kind, credited, entered_at)
     select gen_random_uuid(), account, 'payment', 1, clock_timestamp() - n * interval '1 hour'
     from generate_series(1, 3000) n, unnest($1::uuid[]) account`,
    [[place.liveAccountId, neighbour.accountId]],
  )
  await pool.query(
    `insert into link_sessions (credential_id, id, upstream_id, scopes, wrapped_key, tokens, access_until, can_refresh)
     select id, gen_random_uuid(), gen_random_uuid(), '{}', '', '', clock_timestamp(), false from (
       (select id from credentials where account_id = $1 order by id limit 3) union all (select id from credentials where account_id = $2 limit 3000)) key`,
    [place.liveAccountId, neighbour.accountId],
  )
  await cleanUp()
})

const nowMs = Date.now()
const parts = (spy: pg.Pool) =>
  ({
    pool: spy,
    time: { nowMs: () => nowMs },
    tasks: createTasks({ pool: spy, bindings: Object(null), transport: Object(null), kind: VIDEO_TASKS, seal: null }),
    links: {
      listOfAccount: (accountId: string, page: Parameters<typeof sessionsOfAccount>[2]) =>
        sessionsOfAccount(spy, accountId, page),
    },
  }) as unknown as AccountParts

type Sent = { readonly text: string; readonly values: readonly unknown[] }

/** Runs a list as its route does, and keeps what it sends. */
async function run(operationId: string, mode: 'live' | 'test', query: Readonly<Record<string, string>>) {
  const route = ACCOUNT_ROUTES.find((one) => one.operationId === operationId) ?? assert.fail(operationId)
  const sent: Sent[] = []
  const spy = new Proxy(pool, {
    get(target, name) {
      if (name !== 'query') return Reflect.get(target, name)
      return (asked: string | Sent, values: readonly unknown[] = []) => {
        const { text, values: own } = typeof asked === 'string' ? { text: asked, values } : asked
        sent.push({ text, values: own })
        return target.query(text, [...own])
      }
    },
  })
  const member = { personId: team.of('owner').personId, by: SERVICE, formToken: null, granted: null }
  const given = { id: '', member, place, mode, params: {}, query, body: undefined, on: spy, requireMatch: () => {} }
  const told = await route.run(parts(spy), { ...given, stillMay: async () => {}, visitor: Object(null) })
  return { sent, told: Object(told.body) }
}

type Node = ReturnType<typeof nodesOf>[number]
const number = (value: unknown) => Number(value ?? 0)

/** Rows that were read of tables, whether they were shown or not. */
function rowsRead(nodes: readonly Node[]): number {
  return nodes
    .filter((node) => String(node['Node Type']).includes('Scan') && node['Relation Name'] !== undefined)
    .reduce(
      (sum, node) =>
        sum + (number(node['Actual Rows']) + number(node['Rows Removed by Filter'])) * number(node['Actual Loops']),
      0,
    )
}

const LARGE = /^(charges|api_keys|credentials|audit|usage_totals|entries|link_sessions)/

/** Lists, as they are asked for; and how many rows may be read for a page, where it is more than a few hundred. */
const LISTS: readonly (readonly [
  operation: string,
  mode: 'live' | 'test',
  query: Readonly<Record<string, string>>,
  most?: number,
])[] = [
  ['list_keys', 'live', {}],
  ['list_keys', 'live', { state: 'active' }],
  ['list_keys', 'live', { state: 'revoked' }],
  // Few of the workspace, found among the ids of the account: of these alone all may be read.
  ['list_keys', 'live', { state: 'expired' }, KEYS + 500],
  ['list_keys', 'live', { member_id: place.memberId }],
  // Few, behind very many of the other mode.
  ['list_keys', 'test', { state: 'active' }],
  ['list_keys', 'test', { state: 'revoked' }],
  ['list_requests', 'live', {}],
  // Of what few match, at most so many are looked at.
  ['list_requests', 'live', { model: 'rare' }, 45_000],
  ['list_requests', 'live', { outcome: 'voided' }, 45_000],
  ['list_tasks', 'live', {}],
  ['list_links', 'live', {}],
  ['list_audit', 'live', {}],
  ['list_audit', 'live', { action: 'link.rare' }],
  ['list_audit', 'live', { action: 'link' }],
  ['list_audit', 'live', { subject: 'thing 7' }],
  ['list_audit', 'live', { start: new Date(nowMs - 60_000).toISOString() }],
  ['list_budgets', 'live', {}],
  ['list_budgets', 'live', { kind: 'tag' }],
  ['list_members', 'live', {}],
  ['list_members', 'live', { role: 'owner' }],
  ['list_quota_requests', 'live', {}],
  ['list_quota_requests', 'live', { state: 'open' }],
  ['list_exports', 'live', {}],
  // A line a day is one sum of the account, however many keys were used. Each correction is a line of its own.
  ['get_statement', 'live', {}, DAYS + 3_000],
  ['get_usage', 'live', { start: new Date(nowMs - (DAYS + WITHOUT_INDEX) * 86_400_000).toISOString() }],
]
const FEW = 500
/** By the same name in every run: whose, and since when, is another each time. */
const titleOf = (operation: string, mode: string, query: Readonly<Record<string, string>>) =>
  `${operation} of ${mode} ${JSON.stringify({ ...query, ...(query.member_id && { member_id: '…' }), ...(query.start && { start: '…' }) })}`

describe(`lists of ${KEYS} keys, ${REQUESTS} requests and ${CHANGES} changes`, () => {
  it('are of as many as it says, under the indexes of an installation', async () => {
    const { rows } = await pool.query(
      `select (select count(*)::integer from credentials where account_id = $1) as keys, (select count(*)::integer from charges where account_id = $1) as requests,
         (select sum(requests)::integer from usage_totals where scope_id = $1 and about = '' and grain = 'day') as in_sums,
         (select count(*)::integer from audit where workspace_id = $2) >= $3 as changes,
         (select count(*)::integer from pg_class where relpersistence <> 'p' and relname ~ $4) as unlogged`,
      [place.liveAccountId, place.id, CHANGES, LARGE.source],
    )
    const requests = Math.floor(REQUESTS / DAYS) * DAYS
    assert.deepEqual(rows, [{ keys: KEYS, requests, in_sums: requests, changes: true, unlogged: 0 }])
    recordProof(PROOF, 'made', {
      ...{ keys: KEYS, requests, changes: CHANGES, others: { keys: KEYS, requests: OTHERS, changes: CHANGES } },
      ...{ days: DAYS, seconds: Math.round((performance.now() - startedMs) / 1_000), bytes: await bytesOfAll() },
    })
  })

  for (const [operation, mode, query, most = FEW] of LISTS)
    it(`${titleOf(operation, mode, query)}: reads what it shows, by an index`, async () => {
      const { sent } = await run(operation, mode, query)
      assert.ok(sent.length > 0)
      let read = 0
      const plans: string[] = []
      for (const { text, values } of sent) {
        const { rows } = await pool.query(`explain (analyze, timing off, format json) ${text}`, [...values])
        const nodes = nodesOf(Object(rows[0])['QUERY PLAN'][0].Plan)
        const whole = nodes
          .filter((node) => node['Node Type'] === 'Seq Scan' && LARGE.test(String(node['Relation Name'])))
          // A day without any is not worth an index.
          .filter((node) => number(node['Actual Rows']) + number(node['Rows Removed by Filter']) > 0)
        assert.deepEqual(
          whole.map((node) => node['Relation Name']),
          [],
          text,
        )
        read += rowsRead(nodes)
        plans.push(
          nodes
            .map(
              (node) =>
                `${node['Node Type']} ${node['Index Name'] ?? node['Relation Name'] ?? ''} ${node['Actual Rows']}×${node['Actual Loops']}`,
            )
            .join('; '),
        )
      }
      assert.ok(read <= most, `${read} rows are read, of at most ${most}: ${plans.join('\n')}`)
      const title = titleOf(operation, mode, query)
      recordProof(PROOF, `${title}: rows`, {
        keys: KEYS,
        requests: REQUESTS,
        changes: CHANGES,
        rows_read: read,
        at_most: most,
      })
      tellProgress(`${title}: ${read} rows`)
      await measure(PROOF, title, { unit: 'ms', atMost: MOST_MS }, async () => {
        const askedMs = performance.now()
        await run(operation, mode, query)
        return performance.now() - askedMs
      })
    })

  it('have an index where they are small here, too: none is looked for in a whole table', async () => {
    const client = await pool.connect()
    try {
      await client.query('set enable_seqscan = off')
      for (const [operation, mode, query] of LISTS)
        for (const { text, values } of (await run(operation, mode, query)).sent) {
          const { rows } = await client.query(`explain (format json) ${text}`, [...values])
          const whole = nodesOf(Object(rows[0])['QUERY PLAN'][0].Plan)
            .filter((node) => node['Node Type'] === 'Seq Scan')
            .map((node) => node['Relation Name'])
          // What waits to be added up, and days of charges before there was an index by account.
          assert.deepEqual(
            whole.filter((name) => name !== 'usage_tail'),
            [],
            `${operation} ${JSON.stringify(query)}`,
          )
        }
    } finally {
      client.release(true)
    }
  })
})
