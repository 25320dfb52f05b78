import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { ask, call, chargesOf, startInstallation } from '../acceptance/installation.ts'
import { callMeta, makeAgent } from './agents.ts'
import { connectAgent, KINDS } from './clients.ts'
import { askRaw, callBody, callHeaders } from './raw-agent.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
after(() => installation.stop())
const { pool, sandbox } = installation
const url = `${installation.gateways[0]?.agentUrl}/mcp`
const agent = await makeAgent(pool)

describe('a result', () => {
  const TAG = { operation_id: 'tag_detail', arguments: { tag_name: 'cats' } }
  const as = async (agentName: string, max_price_usd: number) => {
    const body = callBody('use', { ...TAG, max_price_usd })
    const headers = { ...callHeaders('use'), 'user-agent': agentName }
    return Object((await askRaw(url, agent.secret, { headers, body })).message.result)
  }

  for (const agentName of ['claude-code/2.1.328 (sdk-cli)', 'codex-mcp-client/0.169.0'])
    it(`is sent once where the client reads structured results, and an error in words too: ${agentName}`, async () => {
      const { structuredContent, content } = await as(agentName, 1)
      assert.equal(structuredContent.status, 200)
      assert.deepEqual(content, [{ type: 'text', text: 'The result is in structuredContent.' }])
      assert.match((await as(agentName, 0)).content[0].text, /^cost_cap_exceeded: /)
    })

  it('is sent as text too where the client may read that alone', async () => {
    const { structuredContent, content } = await as('claude-code/2.0.5', 1)
    assert.deepEqual(JSON.parse(content[0].text), structuredContent.result)
  })
})

describe('the tools, by the clients that agents are made of', () => {
  for (const kind of KINDS) {
    it(`MCP-1 has exactly the five tools, of which three are free: ${kind}`, async () => {
      const client = await connectAgent(kind, url, agent.secret)
      const before = await chargesOf(pool, agent.accountId)
      try {
        const tools = await client.tools()
        assert.deepEqual(
          tools.map(({ name }) => name),
          ['search', 'get_details', 'list_categories', 'use', 'batch_use'],
        )
        const found = await client.call('search', { query: 'how many people visit this site' })
        const [first] = Object(found.structuredContent).operations
        assert.equal(first.operation_id, 'website_traffic_engagement')
        const details = await client.call('get_details', {
          operation_id: 'tag_detail',
          arguments: { tag_name: 'cats' },
        })
        assert.equal(Object(details.structuredContent.price_of_arguments).max.usd, '0.001450000')
        const { categories } = (await client.call('list_categories')).structuredContent
        assert.ok(Array.isArray(categories) && categories.length >= 5)
        assert.deepEqual(await chargesOf(pool, agent.accountId), before)
      } finally {
        await client.close()
      }
    })

    it(`MCP-2 BASE-7 uses an operation at its price, says in _meta what was charged, and refuses above the cap: ${kind}`, async () => {
      const client = await connectAgent(kind, url, agent.secret)
      try {
        const wanted = { operation_id: 'tag_detail', arguments: { tag_name: 'cats' } }
        const before = (await sandbox.journal()).length
        const refused = await client.call('use', { ...wanted, max_price_usd: 0.00144 })
        assert.equal(refused.isError, true)
        assert.equal(Object(refused.structuredContent.error).code, 'cost_cap_exceeded')
        assert.equal(Object(refused.structuredContent.error).needed_usd, '0.001450000')
        assert.equal((await sandbox.journal()).length, before)
        assert.equal((await chargesOf(pool, agent.accountId)).has(String(refused.structuredContent.request_id)), false)

        const used = await client.call('use', { ...wanted, max_price_usd: 0.00145 })
        assert.equal(used.isError, false, JSON.stringify(used))
        const { request_id, cost_usd, cost_micros_usd } = callMeta(used)
        assert.deepEqual([cost_usd, cost_micros_usd], ['0.001450000', 1_450])
        assert.equal((await chargesOf(pool, agent.accountId)).get(String(request_id)), 1_450_000n)
        assert.match(used.content.at(-1)?.text ?? '', /^Cost: 0\.001450000 USD\. Left: \d/)
        const recorded = await ask(installation.url, agent.secret, `/v1/requests/${request_id}`)
        assert.equal(Object(recorded.json.cost).usd, cost_usd)

        const overHttp = await call(installation.url, agent.secret, 'tag_detail', '')
        assert.equal(overHttp.costUsd, cost_usd)
      } finally {
        await client.close()
      }
    })
  }
})
