import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { makeAgent } from '../mcp/agents.ts'
import { callRaw } from '../mcp/raw-agent.ts'
import { ask, call, makeCustomer, makeKey, startInstallation, type Told } from './installation.ts'

/** What callers and agents can look up of what they were refused. */
const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool } = installation
const agentUrl = `${installation.gateways[0]?.agentUrl}/mcp`
after(installation.stop)

type Row = Readonly<Record<string, unknown>>

async function get(secret: string, path: string) {
  const told = await ask(url, secret, path)
  assert.equal(told.status, 200, told.text)
  return told.json
}
const listed = async (secret: string, query = '') => (await get(secret, `/v1/requests?${query}`)).data as Row[]
const isKept = (secret: string, id: string) =>
  until(async () => (await ask(url, secret, `/v1/requests/${id}`)).status === 200, PATIENCE_MS, `that ${id} is kept`)
const idsOf = (rows: readonly Row[]) => rows.map(({ id }) => id)

const CAPPED = { headers: { 'x-farebox-max-cost-usd': '0' } }

describe('a refused call', () => {
  it('is found by its id, with why it was refused and what would have let it through', async () => {
    const budget = { period: 'day', amount: nanos(1_000_000n) } as const
    const { secret } = await makeCustomer(pool, { key: { budget } })
    const messages = [{ role: 'user', content: 'a short story' }]
    const told = await ask(url, secret, '/v1/chat/completions', {
      body: { model: 'sandbox/text', max_tokens: 60_000, messages },
    })
    assert.equal(told.status, 402, told.text)
    const error = Object(told.json.error)
    await isKept(secret, told.id)
    const { refusal, ended_at, ...rest } = await get(secret, `/v1/requests/${told.id}`)
    assert.ok(Math.abs(Date.parse(String(ended_at)) - Date.now()) < PATIENCE_MS)
    assert.deepEqual(rest, {
      ...{ id: told.id, operation: 'chat_completions', model: 'sandbox/text', outcome: 'refused', failed: false },
      ...{ cost: { usd: '0.000000000', micros_usd: 0 }, begun_at: null, end_user: null, tags: {} },
    })
    const { message, needed, left, ...why } = Object(refusal)
    assert.match(message, /^Budget exceeded/)
    assert.deepEqual([needed.usd, left.usd], [error.needed_usd, '0.001000000'])
    assert.deepEqual(why, {
      ...{ code: 'budget_exceeded', status: 402, budget: { kind: 'key', subject: null, period: 'day' } },
      limited_by: null,
      fix: { output_limit: error.fitting_output_limit, retry_after_seconds: null, url: null },
    })
    // The same in the list, and nobody else's.
    assert.deepEqual(await listed(secret), [{ ...rest, ended_at, refusal }])
    const stranger = await makeCustomer(pool)
    assert.equal((await ask(url, stranger.secret, `/v1/requests/${told.id}`)).status, 404)
    assert.deepEqual(await listed(stranger.secret), [])
  })

  it('stands in lists among those that were carried out, page after page, by operation and outcome', async () => {
    const { secret, workspaceId } = await makeCustomer(pool)
    const made: Told[] = []
    for (let times = 0; times < 4; times += 1) {
      made.unshift(await call(url, secret, 'tag_detail'))
      made.unshift(await call(url, secret, times % 2 === 0 ? 'rerank' : 'tag_detail', '', CAPPED))
    }
    for (const { id, status } of made) if (status === 402) await isKept(secret, id)
    const all = await listed(secret)
    // A refusal has the time of its process, and an end that of PostgreSQL: two clocks, so the latest first by what they say.
    const expected = idsOf(all)
    assert.deepEqual(
      all.map(({ ended_at }) => ended_at),
      all
        .map(({ ended_at }) => String(ended_at))
        .toSorted()
        .toReversed(),
    )
    assert.deepEqual(
      new Map(all.map(({ id, outcome }) => [id, outcome])),
      new Map(made.map(({ id, status }) => [id, status === 402 ? 'refused' : 'posted'])),
    )
    for (const limit of [1, 3]) {
      const seen: unknown[] = []
      let cursor: unknown = ''
      while (cursor !== null) {
        const page = await get(secret, `/v1/requests?limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`)
        seen.push(...idsOf(page.data as Row[]))
        cursor = page.next_cursor
      }
      assert.deepEqual(seen, expected)
    }
    const refused = made.filter(({ status }) => status === 402).map(({ id }) => id)
    assert.deepEqual(idsOf(await listed(secret, 'outcome=refused')), refused)
    assert.equal((await listed(secret, 'outcome=refused&operation=rerank')).length, 2)
    assert.equal((await listed(secret, 'outcome=posted')).length, 4)
    assert.deepEqual(await listed(secret, 'outcome=voided'), [])
    for (const query of ['min_cost_usd=0.000000001', 'tag=team=search', `end_user=${workspaceId}`])
      assert.deepEqual(await listed(secret, `outcome=refused&${query}`), [], query)
    const sibling = await makeKey(pool, workspaceId)
    assert.deepEqual(await listed(sibling.secret), [])
  })

  it("of an agent's tool is found by its id and by its key", async () => {
    const agent = await makeAgent(pool)
    const wanted = { operation_id: 'tag_detail', arguments: { tag_name: 'cats' }, max_price_usd: 0 }
    const meta = { 'farebox/idempotency-key': 'trip-7' }
    const { structured } = await callRaw(agentUrl, agent.secret, 'use', wanted, meta)
    const id = String(structured.request_id)
    await isKept(agent.secret, id)
    const look = async (given: object) => {
      const asked = { operation_id: 'get_request', arguments: given, max_price_usd: 0 }
      return Object((await callRaw(agentUrl, agent.secret, 'use', asked)).structured.result)
    }
    assert.equal((await look({ request_id: id })).outcome, 'refused')
    const { data, refused } = await look({ idempotency_key: 'trip-7' })
    assert.deepEqual([data, refused.length, refused[0]?.id], [[], 1, id])
  })
})
