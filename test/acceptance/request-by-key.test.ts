import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { findClaiming } from '../../server/src/ledger/requests.ts'
import { ask, call, errorOf, makeCustomer, makeKey, startInstallation } from './installation.ts'
import { nodesOf } from './plan-nodes.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)
const customer = await makeCustomer(pool)

let keys = 0
const newKey = () => `order-${keys++}`
const withKey = (key: string) => ({ headers: { 'idempotency-key': key } })
const find = async (key: string, secret = customer.secret, more = '') => {
  const told = await ask(url, secret, `/v1/requests?idempotency_key=${encodeURIComponent(key)}${more}`)
  assert.equal(told.status, 200, told.text)
  return told.json as Record<'data' | 'open' | 'refused', Record<string, unknown>[]> & { next_cursor: null }
}
const NOTHING = { data: [], open: [], refused: [], next_cursor: null }

describe('GET /v1/requests?idempotency_key=', () => {
  it('gives the call that has the key, as lists give it', async () => {
    const key = newKey()
    const { id } = await call(url, customer.secret, 'tag_detail', '', withKey(key))
    const { data, open, next_cursor } = await find(key)
    assert.deepEqual([open, next_cursor, data.length], [[], null, 1])
    const listed = (await ask(url, customer.secret, '/v1/requests?limit=1')).json as { data: unknown[] }
    assert.deepEqual(data, listed.data)
    assert.deepEqual(
      [data[0]?.id, data[0]?.outcome, data[0]?.cost],
      [id, 'posted', { usd: '0.001450000', micros_usd: 1_450 }],
    )
  })

  it('gives one that runs in `open`, and then as it ended', async () => {
    const key = newKey()
    const running = call(url, customer.secret, 'tag_detail', 'sandbox:delay=4000', withKey(key))
    await until(async () => (await find(key)).open.length === 1, PATIENCE_MS, 'that the call runs')
    const { data, open } = await find(key)
    const { begun_at, ...rest } = open[0] ?? {}
    assert.ok(typeof begun_at === 'string')
    const { id } = await running
    const held = { usd: '0.001450000', micros_usd: 1_450 }
    const whose = { model: null, end_user: null, tags: {} }
    assert.deepEqual(
      [data, rest],
      [[], { id, operation: 'tag_detail', outcome: 'running', held, unsettled_at: null, ...whose }],
    )
    assert.deepEqual(
      (await find(key)).data.map((one) => one.id),
      [id],
    )
  })

  it('gives a task for as long as it runs, by the id that the task has', async () => {
    const key = newKey()
    const told = await call(url, customer.secret, 'video_synthesis', '', withKey(key))
    const [running] = (await find(key)).open
    assert.deepEqual([running?.id, running?.operation], [Object(told.json.output).task_id, 'video_synthesis'])
  })

  it('gives nothing for a key that nobody has or whose call ended uncharged, and beside that what was refused', async () => {
    assert.deepEqual(await find(newKey()), NOTHING)
    const uncharged = newKey()
    await sandbox.fault('reseller', ['status=503'])
    assert.equal((await call(url, customer.secret, 'tag_detail', '', withKey(uncharged))).status, 503)
    assert.deepEqual(await find(uncharged), NOTHING)
    const capped = newKey()
    const cap = { headers: { 'idempotency-key': capped, 'x-farebox-max-cost-usd': '0.000001' } }
    assert.equal((await call(url, customer.secret, 'tag_detail', '', cap)).status, 402)
    await until(async () => (await find(capped)).refused.length === 1, PATIENCE_MS, 'that it is written')
    const { refused, ...calls } = await find(capped)
    assert.deepEqual({ ...calls, refused: [] }, NOTHING)
    assert.deepEqual(
      refused.map(({ outcome, refusal }) => [outcome, Object(refusal).code]),
      [['refused', 'cost_cap_exceeded']],
    )
  })

  it('gives nothing once the key is free for another call', async () => {
    const key = newKey()
    const { id } = await call(url, customer.secret, 'tag_detail', '', withKey(key))
    await pool.query('update claims set kept_until = clock_timestamp() where call_id = $1', [id])
    assert.deepEqual(await find(key), NOTHING)
  })

  it("answers about another key's call as about none", async () => {
    const key = newKey()
    await call(url, customer.secret, 'tag_detail', '', withKey(key))
    const sibling = await makeKey(pool, customer.workspaceId)
    const stranger = await makeCustomer(pool)
    for (const { secret } of [sibling, stranger]) assert.deepEqual(await find(key, secret), NOTHING)
  })

  it('gives the calls of every operation that was called with the key, or of the one that is named', async () => {
    const key = newKey()
    const tag = await call(url, customer.secret, 'tag_detail', '', withKey(key))
    const rerank = await call(url, customer.secret, 'rerank', '', withKey(key))
    const idsOf = async (more = '') => (await find(key, customer.secret, more)).data.map(({ id }) => id)
    assert.deepEqual(await idsOf(), [rerank.id, tag.id])
    assert.deepEqual(await idsOf('&operation=tag_detail'), [tag.id])
    assert.deepEqual(await idsOf('&operation=user_stories'), [])
    assert.deepEqual(await idsOf('&operation=nothing_of_ours'), [])
  })

  it('takes the keys that a call takes, character by character', async () => {
    for (const key of ['%', '_', "' or '1'='1".replaceAll(' ', ''), '!~"\\,;:\'%00&=+#?', 'x'.repeat(255)]) {
      assert.deepEqual(await find(key), NOTHING)
      const { id } = await call(url, customer.secret, 'tag_detail', '', withKey(key))
      assert.deepEqual(
        (await find(key)).data.map((one) => one.id),
        [id],
        key,
      )
    }
  })

  it('is 400 for what is no key, and beside anything but an operation', async () => {
    const wrong = ['', 'a%20b', '%C3%A9', 'x'.repeat(256)].map((key) => `idempotency_key=${key}`)
    const beside = ['limit=5', 'outcome=posted', 'start_time=1', 'end_time=99', 'idempotency_key=b', 'cursor=x']
    for (const query of [...wrong, ...beside.map((other) => `idempotency_key=a&${other}`)]) {
      const told = await ask(url, customer.secret, `/v1/requests?${query}`)
      assert.deepEqual([told.status, errorOf(told).code], [400, 'invalid_request'], query)
    }
  })

  it('reads the claims of its own key by an index, whatever others have', async () => {
    const { keyId, secret } = await makeCustomer(pool)
    const { id } = await call(url, secret, 'tag_detail', '', withKey('mine'))
    await pool.query(
      `insert into claims (credential_id, scope, key, call_id, fingerprint, keep_seconds, ends_with_owner)
       select gen_random_uuid(), 'idempotency', 'tag_detail mine', gen_random_uuid(), '', 60, false from generate_series(1, 20000)`,
    )
    await pool.query('analyze claims')
    let [text, values]: [string, unknown[]] = ['', []]
    const listener = Object.create(pool, {
      query: {
        value: (query: { text: string; values: unknown[] }) => {
          ;({ text, values } = query)
          return pool.query(query)
        },
      },
    })
    assert.deepEqual(await findClaiming(listener, keyId, 'idempotency', ['tag_detail mine', 'rerank mine']), [id])
    const { rows } = await pool.query(`explain (analyze, format json) ${text}`, values)
    const scans = nodesOf(rows[0]['QUERY PLAN'][0].Plan).filter((node) => node['Relation Name'] === 'claims')
    assert.equal(scans.length, 1)
    for (const node of scans) {
      assert.match(String(node['Node Type']), /^Index/, JSON.stringify(node))
      assert.ok(Number(node['Actual Rows']) + Number(node['Rows Removed by Filter'] ?? 0) <= 1, JSON.stringify(node))
    }
    await pool.query("delete from claims where key = 'tag_detail mine' and call_id <> $1", [id])
  })
})
