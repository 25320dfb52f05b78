import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { listRefusedCalls, type RefusedCall } from '../../server/src/gateway/read-refused-calls.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos, usd } from '../../server/src/kernel/money.ts'
import { createNetworks } from '../../server/src/kernel/networks.ts'
import { makeAgent } from '../mcp/agents.ts'
import { callRaw } from '../mcp/raw-agent.ts'
import { ask, call, makeCustomer, makeKey, startInstallation } from './installation.ts'

/** What is kept of refused calls, and where whoever made them is led to mend it. */
const SITE = 'https://site.example'
const database = await freshDatabase()
const installation = await startInstallation(database.url, { env: { FAREBOX_HTTP_SITE_URL: SITE } })
const { url, pool, sandbox } = installation
const agentUrl = `${installation.gateways[0]?.agentUrl}/mcp`
after(installation.stop)

/** The refused calls of an account, the latest first, once there are so many. */
async function refusedOf(accountId: Id, count: number): Promise<readonly RefusedCall[]> {
  const list = async () =>
    (await listRefusedCalls(pool, { accountId, sinceMs: 0, untilMs: Date.now() + 60_000, limit: 100 })).rows
  await until(async () => (await list()).length >= count, 20_000, `that ${count} are written`)
  return list()
}

const CAPPED = { headers: { 'x-farebox-max-cost-usd': '0' } }
const chat = (model: string, more: object = {}) => ({
  body: { model, messages: [{ role: 'user', content: 'a short story' }], ...more },
})

describe('a refused call', () => {
  it('is kept with what it needed, what was left, whose budget it was and what would have let it through', async () => {
    const budget = { period: 'day', amount: nanos(1_000_000n) } as const
    const { secret, keyId, accountId, workspaceId } = await makeCustomer(pool, { key: { budget } })
    const told = await ask(url, secret, '/v1/chat/completions', chat('sandbox/text', { max_tokens: 60_000 }))
    assert.equal(told.status, 402, told.text)
    const error = Object(told.json.error)
    const page = `${SITE}/console/${workspaceId}/test/keys/${keyId}`
    assert.equal(error.fix_url, page)
    assert.ok(Number.isInteger(error.fitting_output_limit))
    const [{ at, ...refused } = assert.fail()] = await refusedOf(accountId, 1)
    assert.ok(Math.abs(at.getTime() - Date.now()) < PATIENCE_MS)
    assert.deepEqual(refused, {
      ...{ id: told.id, accountId, credentialId: keyId, operation: 'chat_completions', model: 'sandbox/text' },
      ...{ code: 'budget_exceeded', status: 402, needed: usd(error.needed_usd), left: usd('0.001') },
      budget: { kind: 'key', subject: null, period: 'day' },
      ...{ limitedBy: null, fittingOutput: error.fitting_output_limit, retryAfterSeconds: null, fixUrl: page },
    })
  })

  it('is every one of a known key that asks for a call, and nothing else', async () => {
    const { secret, workspaceId, accountId } = await makeCustomer(pool)
    const scoped = await makeKey(pool, workspaceId, { scopes: ['rerank'] })
    const distant = await makeKey(pool, workspaceId, { networks: createNetworks(['192.0.2.0/24']) })
    const toGemini = { body: { contents: [{ role: 'user', parts: [{ text: 'a short story' }] }] } }
    const expected = [
      [await call(url, scoped.secret, 'tag_detail'), 'tag_detail', null, 'forbidden'],
      [await call(url, distant.secret, 'tag_detail'), 'tag_detail', null, 'address_not_allowed'],
      [await ask(url, secret, '/v1/rerank', { body: '{' }), 'rerank', null, 'invalid_json'],
      [
        await ask(url, secret, '/v1/chat/completions', chat('no/body')),
        'chat_completions',
        'no/body',
        'model_not_found',
      ],
      [
        await ask(url, secret, '/v1beta/models/no/such:generateContent', toGemini),
        ...(['generate_content', 'no/such', 'model_not_found'] as const),
      ],
      // A key in the place of a name is no name.
      [await ask(url, secret, '/v1/chat/completions', chat(secret)), 'chat_completions', null, 'model_not_found'],
      [await call(url, secret, 'tag_detail', '', CAPPED), 'tag_detail', null, 'cost_cap_exceeded'],
    ] as const
    // No calls: a price is asked for, there is no such path, what is free, and a provider's own refusal of a call that had begun.
    const quoted = { ...CAPPED.headers, 'x-farebox-cost-mode': 'quote' }
    await call(url, secret, 'tag_detail', '', { headers: quoted })
    await ask(url, secret, '/v1/nothing')
    await ask(url, secret, '/v1/requests?limit=0')
    await sandbox.fault('reseller', ['status=429'])
    assert.ok((await call(url, secret, 'tag_detail')).status >= 400)
    const rows = await refusedOf(accountId, expected.length)
    assert.deepEqual(
      rows.map(({ id, operation, model, code }) => [id, operation, model, code]),
      expected.map(([{ id }, ...row]) => [id, ...row]).toReversed(),
    )
    const { rows: kept } = await pool.query<{ text: string }>('select refused_calls::text as text from refused_calls')
    for (const { text } of kept) assert.doesNotMatch(text, /fb_(live|test)_|short story/)
  })

  it("of an agent's tool is kept too, and its answer has the page where it is mended", async () => {
    const agent = await makeAgent(pool)
    const wanted = { operation_id: 'tag_detail', arguments: { tag_name: 'cats' }, max_price_usd: 0 }
    const { structured, content } = await callRaw(agentUrl, agent.secret, 'use', wanted)
    const page = `${SITE}/docs/errors#cost_cap_exceeded`
    assert.equal(Object(structured.error).fix_url, page)
    assert.ok(JSON.stringify(content).includes(page))
    const [{ id, operation, code, fixUrl } = assert.fail()] = await refusedOf(agent.accountId, 1)
    assert.deepEqual([id, operation, code, fixUrl], [structured.request_id, 'tag_detail', 'cost_cap_exceeded', page])
  })
})

describe('fix_url', () => {
  it('stands in the error of every protocol', async () => {
    const { secret, workspaceId } = await makeCustomer(pool, { money: 0n })
    type Error = Readonly<Record<string, unknown>>
    const errors = {
      chat_completions: (error: Error) => error.fix_url,
      messages: (error: Error) => Object(error.details).fix_url,
      generate_content: (error: Error) => Object(Object(error.details)[0].metadata).fix_url,
      rerank: (error: Error) => error.fix_url,
      tag_detail: (error: Error) => error.fix_url,
    }
    for (const [operation, find] of Object.entries(errors)) {
      const told = await call(url, secret, operation)
      assert.equal(told.status, 402, told.text)
      assert.equal(find(Object(told.json.error)), `${SITE}/console/${workspaceId}/test`, operation)
    }
  })
})
