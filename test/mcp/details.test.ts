import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { startInstallation } from '../acceptance/installation.ts'
import { makeAgent } from './agents.ts'
import { callRaw } from './raw-agent.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
after(() => installation.stop())
const { pool } = installation
const url = `${installation.gateways[0]?.agentUrl}/mcp`
const agent = await makeAgent(pool)
const details = (given: object, secret = agent.secret) => callRaw(url, secret, 'get_details', given)

/** Of what an agent is told at once. */
const MOST_CHARACTERS = 100_000

describe('what is told of operations', () => {
  it('has room in an answer, of each and of all together', async () => {
    const all = await callRaw(url, agent.secret, 'list_categories', {})
    assert.ok(all.content[0].text.length < MOST_CHARACTERS)
    const ids = all.structured.categories.flatMap((one: { operations: { operation_id: string }[] }) =>
      one.operations.map(({ operation_id: id }) => id),
    )
    assert.ok(ids.length > 20)
    for (const operation_id of ids)
      for (const schema of ['short', 'full']) {
        const { content, isError } = await details({ operation_id, schema })
        assert.equal(isError, false, operation_id)
        assert.ok(content[0].text.length < MOST_CHARACTERS, operation_id)
      }
  })

  it('is the same each time, and takes the model as an argument where it stands in the path', async () => {
    const asked = { operation_id: 'generate_content' }
    const [first, second] = [await details(asked), await details(asked)]
    assert.deepEqual(first.structured, second.structured)
    assert.ok(first.structured.arguments.required.includes('model'))
  })

  it('has the price of arguments without a quote, which no tool redeems', async () => {
    const { structured } = await details({ operation_id: 'tag_detail', arguments: { tag_name: 'cats' } })
    assert.equal(structured.price_of_arguments.max.usd, '0.001450000')
    assert.equal('quote_id' in structured.price_of_arguments, false)
    assert.equal('expires_at' in structured.price_of_arguments, false)
  })

  it('says of a model whether this key may ask it', async () => {
    for (const [scopes, allowed] of [
      [['finance'], false],
      [['models'], true],
      [['model:sandbox/text'], true],
      [['model:sandbox/image'], false],
      [['chat_completions'], true],
    ] as const) {
      const { secret } = await makeAgent(pool, { scopes })
      const model = await details({ operation_id: 'model:sandbox/text' }, secret)
      assert.equal(model.structured.allowed, allowed, scopes[0])
      const given = { operation_id: 'list_models', arguments: { contains: 'sandbox/text' }, max_price_usd: 0 }
      const { structured } = await callRaw(url, secret, 'use', given)
      const listed = structured.result.data.find((one: { model: string }) => one.model === 'sandbox/text')
      assert.equal(listed?.allowed, allowed, scopes[0])
    }
  })
})

describe('an idempotency key', () => {
  const meta = { 'farebox/idempotency-key': 'free-1' }
  it('is refused where a free operation changes something, which it would not protect', async () => {
    for (const operation_id of ['auth_link', 'cancel_video_task']) {
      const { structured } = await callRaw(url, agent.secret, 'use', { operation_id, max_price_usd: 0 }, meta)
      assert.equal(structured.error?.code, 'invalid_request')
      assert.match(structured.error.message, /takes no idempotency key/)
    }
    const read = await callRaw(url, agent.secret, 'use', { operation_id: 'get_balance', max_price_usd: 0 }, meta)
    assert.equal(read.isError, false)
  })
})
