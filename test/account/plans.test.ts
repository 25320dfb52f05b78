import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count, isFullProof, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { keyPageStatement, listKeyPage } from '../../server/src/identity/keys-of-account.ts'
import { ids } from '../acceptance/installation.ts'
import { nodesOf } from '../acceptance/plan-nodes.ts'
import { connect } from '../ledger/world.ts'
import { makeTeam } from './house.ts'

const KEYS = count({ full: 100_000, reduced: 20_000 })
const MOST_MS = 100

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

const team = await makeTeam(pool, [])
const neighbour = await makeTeam(pool, [])

/** As many keys as nobody has, of two accounts, of which but the oldest are revoked. */
for (const { accountId, workspaceId } of [team, neighbour]) {
  await pool.query(
    `with made as (
       insert into credentials (id, account_id)
       select (lpad(to_hex(1700000000000 + n), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8' || substr(md5(n::text || $1::uuid::text), 1, 15))::uuid, $1::uuid
       from generate_series(1, $3::integer) n returning id)
     insert into api_keys (id, workspace_id, name, hash, revoked_at)
     select id, $2, 'one of many', sha256(id::text::bytea), case when row_number() over (order by id) > $3 * 0.01 then clock_timestamp() end from made`,
    [accountId, workspaceId, KEYS],
  )
}
/** Some of the oldest of one have expired, and a few are a member's. */
const memberId = ids.next()
await pool.query(
  `update api_keys set expires_at = clock_timestamp() - interval '1 day' where id in (
     select id from api_keys where workspace_id = $1 and revoked_at is null order by id limit 50)`,
  [team.workspaceId],
)
await pool.query(
  `update api_keys set member_id = $2 where id in (select id from api_keys where workspace_id = $1 order by id limit 60)`,
  [team.workspaceId, memberId],
)
await pool.query(
  'update credentials set active = false from api_keys k where k.id = credentials.id and k.revoked_at is not null',
)
for (const table of ['credentials', 'api_keys', 'accounts', 'allowances']) await pool.query(`analyze ${table}`)

const text = (value: unknown) => (typeof value === 'string' ? value : '')

async function planOf({ text: sql, values }: { readonly text: string; readonly values: readonly unknown[] }) {
  const { rows } = await pool.query(`explain (format json) ${sql}`, [...values])
  return nodesOf(Object(rows[0])['QUERY PLAN'][0].Plan)
}

const { accountId, workspaceId } = team
const PAGES = {
  first: { accountId, workspaceId, most: 21 },
  next: { accountId, workspaceId, most: 21, after: ids.next() },
  active: { accountId, workspaceId, most: 21, state: 'active' },
  revoked: { accountId, workspaceId, most: 21, state: 'revoked' },
  expired: { accountId, workspaceId, most: 21, state: 'expired' },
  'member’s': { accountId, workspaceId, most: 21, memberId },
} as const

/** Without which a page of few would be found among very many others. */
const INDEXES: Readonly<Record<string, string>> = { expired: 'api_keys_expiring', 'member’s': 'api_keys_of_member' }

describe(`a page of ${KEYS} keys`, () => {
  for (const [name, page] of Object.entries(PAGES))
    it(`is a range of an index, and neither all of them nor sorted: the ${name} one`, async () => {
      const plan = await planOf(keyPageStatement(page))
      const whole = plan.filter(
        (one) => one['Node Type'] === 'Seq Scan' && /api_keys|credentials/.test(text(one['Relation Name'])),
      )
      assert.deepEqual(whole, [])
      assert.deepEqual(
        plan.filter((one) => text(one['Node Type']).includes('Sort')),
        [],
      )
      const index = INDEXES[name]
      const used = plan.map((one) => text(one['Index Name']))
      assert.ok(index === undefined || used.includes(index), used.join())
      await listKeyPage(pool, page)
      const startedMs = performance.now()
      assert.equal((await listKeyPage(pool, page)).length, 21)
      const ms = performance.now() - startedMs
      recordProof('account-pages', `${name} page of keys`, { keys: KEYS, ms: Math.round(ms), limit_ms: MOST_MS })
      if (isFullProof) assert.ok(ms < MOST_MS, `${ms}`)
    })
})
