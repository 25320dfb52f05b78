import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { until } from '../../harness/until.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { ask, chargesOf, makeCustomer, startInstallation } from '../acceptance/installation.ts'
import { APPROVED, makeAgent } from './agents.ts'
import { askRaw, callBody, callHeaders, callRaw } from './raw-agent.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url, {
  env: { FAREBOX_HTTP_PUBLIC_URL: 'https://call.example', FAREBOX_ROLES: 'gateway,agent,worker,admin' },
})
after(() => installation.stop())
const { pool, sandbox } = installation
const url = `${installation.gateways[0]?.agentUrl}/mcp`
const agent = await makeAgent(pool)

const TAG = { operation_id: 'tag_detail', arguments: { tag_name: 'cats' } }
const CHAT = {
  operation_id: 'chat_completions',
  arguments: { model: 'sandbox/text', messages: [{ role: 'user', content: 'a short story' }], max_tokens: 100 },
}
const use = (given: object, secret = agent.secret, meta = {}) =>
  callRaw(url, secret, 'use', { max_price_usd: 1, ...given }, meta)
const ledgerRows = async (accountId: string) => {
  const { rows } = await pool.query(
    `select (select count(*) from charges where account_id = $1) + (select count(*) from holds where account_id = $1) as rows`,
    [accountId],
  )
  return Number(rows[0].rows)
}

describe('what is refused before any spend', () => {
  /** That nothing was written and nobody was asked. */
  async function leavesNothing(accountId: string, act: () => Promise<unknown>): Promise<void> {
    const [rows, asked] = [await ledgerRows(accountId), (await sandbox.journal()).length]
    await act()
    assert.deepEqual([await ledgerRows(accountId), (await sandbox.journal()).length], [rows, asked])
  }

  it('MCP-2 a price above max_price_usd, with what is needed, for every kind of operation', async () => {
    for (const wanted of [TAG, CHAT, { operation_id: 'video_synthesis', arguments: VIDEO }])
      await leavesNothing(agent.accountId, async () => {
        const { isError, structured, content } = await use({ ...wanted, max_price_usd: 0.000000001 })
        assert.equal(isError, true)
        assert.equal(structured.error?.code, 'cost_cap_exceeded')
        assert.ok(usd(structured.error.needed_usd) > 1n)
        assert.equal(structured.error.cap_usd, '0.000000001')
        assert.match(content[0].text, /can cost up to .* max_price_usd was .* Nothing was charged/)
      })
  })

  it('what the budget of the key does not cover, with what is left', async () => {
    const poor = await makeAgent(pool, { budget: { amount: usd('0.001'), period: 'total' } })
    await leavesNothing(poor.accountId, async () => {
      const { structured } = await use(TAG, poor.secret)
      assert.equal(structured.error?.code, 'budget_exceeded')
      assert.deepEqual([structured.error.needed_usd, structured.error.left_usd], ['0.001450000', '0.001000000'])
    })
  })

  it('AUTH-7 for API keys: a key without a budget, scopes or a rate of its own, which may search all the same', async () => {
    for (const [name, lacking] of [
      ['budget', { scopes: APPROVED.scopes, rates: APPROVED.rates }],
      ['scopes', { budget: APPROVED.budget, rates: APPROVED.rates }],
      ['rate', { budget: APPROVED.budget, scopes: APPROVED.scopes, rates: { tokensPerMinute: 1_000_000 } }],
    ] as const) {
      const { secret, accountId } = await makeCustomer(pool, { key: lacking })
      await leavesNothing(accountId, async () => {
        const refused = await use(TAG, secret)
        assert.equal(refused.structured.error?.code, 'forbidden')
        assert.match(refused.structured.error?.message, new RegExp(`lacks .*${name}`))
        const batch = await callRaw(url, secret, 'batch_use', { calls: [TAG], max_total_usd: 1 })
        assert.equal(batch.structured.results[0].error?.code, 'forbidden')
      })
      assert.equal((await callRaw(url, secret, 'search', { query: 'hashtag' })).isError, false)
      for (const operation_id of ['get_balance', 'list_models', 'list_links', 'list_video_tasks'])
        assert.equal((await use({ operation_id, max_price_usd: 0 }, secret)).isError, false, operation_id)
      for (const operation_id of ['auth_link', 'cancel_video_task'])
        assert.equal((await use({ operation_id, max_price_usd: 0 }, secret)).structured.error?.code, 'forbidden')
      const counted = { model: 'sandbox/text', messages: CHAT.arguments.messages }
      const tokens = await use({ operation_id: 'messages_count_tokens', arguments: counted, max_price_usd: 0 }, secret)
      assert.equal(tokens.isError, false, tokens.text)
    }
  })

  it('what is wrong counts as a request, as over HTTP, and as a refusal of its key', async () => {
    const { secret } = await makeAgent(pool, { rates: { requestsPerMinute: 5 } })
    for (const given of [
      { operation_id: 'tag_details' },
      { operation_id: 'financial_metrics_snapshot', arguments: {} },
      { ...CHAT, arguments: { ...CHAT.arguments, stream: true } },
      { operation_id: 'tag_detail', arguments: { tag_name: { a: 1 } } },
      { operation_id: 'tag_detail', max_price: 1 },
    ])
      assert.match((await use(given, secret)).structured.error?.code, /^(resource_not_found|invalid_request)$/)
    const sixth = await use(TAG, secret)
    assert.equal(sixth.structured.error?.code, 'rate_limit_exceeded')
    assert.ok(sixth.structured.error.retry_after_seconds > 0)
    const unread = await askRaw(url, secret, { headers: callHeaders('use'), body: '{' })
    assert.equal(unread.status, 429)
  })

  it('says which operation was meant', async () => {
    const { structured } = await use({ operation_id: 'tag_details' })
    assert.equal(structured.error.nearest, 'tag_detail')
    const streamed = await use({ operation_id: 'stream_generate_content' })
    assert.equal(streamed.structured.error.nearest, 'generate_content')
  })
})

/** It is answered when a caller who leaves has left. */
const SLOW = { operation_id: 'tag_detail', arguments: { tag_name: 'cats sandbox:delay=1500' } }
const VIDEO = { model: 'sandbox/video', input: { prompt: 'a fox in the snow' } }

describe('what is answered', () => {
  it('the answer of a model, its cost, and what is left of budget and balance', async () => {
    const { structured, meta, content } = await use(CHAT)
    assert.equal(structured.status, 200)
    assert.ok(Array.isArray(structured.result.choices))
    assert.equal(meta['farebox/call'].cost_usd, structured.cost_usd)
    assert.equal((await chargesOf(pool, agent.accountId)).get(structured.request_id), usd(structured.cost_usd))
    assert.match(structured.left.budget_usd, /^[34]\./)
    assert.ok(structured.left.balance_usd)
    assert.deepEqual(JSON.parse(content[0].text), structured.result)
    const { json } = await ask(installation.url, agent.secret, '/v1/balance')
    assert.equal(Object(json.budget).left.usd, structured.left.budget_usd)
  })

  it('pictures as pictures, whose letters stand in no text', async () => {
    const given = { model: 'sandbox/image', prompt: 'a fox in the snow', size: '1024x1024', quality: 'low' }
    const { structured, content, isError } = await use({ operation_id: 'image_generations', arguments: given })
    assert.equal(isError, false, JSON.stringify(structured).slice(0, 500))
    const pictures = content.filter(({ type }: { type: string }) => type === 'image')
    assert.equal(pictures.length, 1)
    assert.equal(pictures[0].mimeType, 'image/png')
    assert.equal(structured.result.data[0].b64_json, '[picture 1]')
  })

  it('of what is too large its beginning, with how to get the rest', async () => {
    const given = { model: 'sandbox/embedding', input: Array.from({ length: 900 }, (_, at) => `text ${at}`) }
    const { structured, text } = await use({ operation_id: 'embeddings', arguments: given })
    assert.ok(structured.truncated, JSON.stringify(structured).slice(0, 200))
    assert.ok(structured.truncated.total_characters > structured.truncated.shown_characters)
    assert.match(structured.truncated.how, /Ask for less/)
    assert.ok(structured.cost_usd)
    assert.ok(text.length < 500_000)
  })

  it('a video as a task, that is polled, listed and cancelled by operations of their own, for nothing', async () => {
    const created = await use({ operation_id: 'video_synthesis', arguments: VIDEO, max_price_usd: 3 })
    assert.equal(created.isError, false, created.text)
    const { task_id } = created.structured.result.output
    assert.ok(usd(created.structured.held_usd) > 0n)
    const leftOf = async () => Object((await ask(installation.url, agent.secret, '/v1/balance')).json)
    const { available, budget } = await leftOf()
    assert.deepEqual(created.structured.left, {
      balance_usd: available.usd,
      budget_usd: budget.left.usd,
      budget_period: 'month',
    })
    const poll = () => use({ operation_id: 'get_video_task', arguments: { task_id }, max_price_usd: 0 })
    await until(
      async () => {
        await new Promise((resolve) => setTimeout(resolve, 600))
        return (await poll()).structured.result?.output?.task_status === 'SUCCEEDED'
      },
      120_000,
      'that the video is ready',
    )
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    const { structured, meta, content } = await poll()
    assert.equal(structured.cost_usd, '0.000000000')
    assert.equal(meta['farebox/call'].task_cost_usd, structured.result.cost_usd)
    assert.match(content.at(-1).text, new RegExp(`The task has cost ${structured.result.cost_usd} USD`))
    assert.equal(structured.left.balance_usd, (await leftOf()).available.usd)
    assert.equal(usd(structured.result.cost_usd), (await chargesOf(pool, agent.accountId)).get(task_id))
    assert.match(structured.result.output.video_url, /^http/)
    const listed = await use({ operation_id: 'list_video_tasks', arguments: { limit: 5 }, max_price_usd: 0 })
    assert.equal(listed.structured.result.data[0].output.task_id, task_id)
    const cancelled = await use({ operation_id: 'cancel_video_task', arguments: { task_id }, max_price_usd: 0 })
    assert.equal(cancelled.structured.result.output.task_status, 'SUCCEEDED')
  })

  it('how an account is linked, and that a call which needs one says so', async () => {
    const none = await use({ operation_id: 'list_links', max_price_usd: 0 })
    assert.deepEqual(none.structured.result, { data: [] })
    const started = await use({ operation_id: 'auth_link', max_price_usd: 0 })
    assert.match(
      started.structured.result.auth_url,
      /redirect_uri=https%3A%2F%2Fcall\.example%2Fapis%2Fv1%2Fsocial_a%2Foauth_callback/,
    )
    const refused = await use({ operation_id: 'follow_user', arguments: { target_user_id: '1' } })
    assert.equal(refused.structured.error?.code, 'link_required')
  })

  it('a call that was made is looked up by its id and by its idempotency key, for nothing', async () => {
    const made = await use(TAG, agent.secret, { 'farebox/idempotency-key': 'looked-up' })
    const look = (given: object) => use({ operation_id: 'get_request', arguments: given, max_price_usd: 0 })
    const byId = await look({ request_id: made.structured.request_id })
    assert.deepEqual([byId.isError, byId.structured.cost_usd], [false, '0.000000000'])
    assert.deepEqual(
      [byId.structured.result.operation, byId.structured.result.outcome, byId.structured.result.cost.usd],
      ['tag_detail', 'posted', made.structured.cost_usd],
    )
    const { data } = (await look({ idempotency_key: 'looked-up' })).structured.result
    assert.deepEqual(
      data.map(({ id }: { id: string }) => id),
      [made.structured.request_id],
    )
    const none = await look({ request_id: crypto.randomUUID() })
    assert.equal(none.structured.error?.code, 'resource_not_found')
    assert.match((await look({})).structured.error?.message, /request_id or idempotency_key/)
  })

  it('a call that its caller has left goes on and is charged, as over HTTP', async () => {
    const before = await chargesOf(pool, agent.accountId)
    const journal = (await sandbox.journal()).length
    const controller = new AbortController()
    const asked = fetch(url, {
      method: 'POST',
      signal: controller.signal,
      headers: {
        authorization: `Bearer ${agent.secret}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        ...callHeaders('use'),
      },
      body: JSON.stringify(callBody('use', { ...SLOW, max_price_usd: 1 })),
    }).catch(() => undefined)
    await until(async () => (await sandbox.journal()).length > journal, 60_000, 'that the upstream is asked')
    controller.abort()
    await asked
    await until(async () => (await chargesOf(pool, agent.accountId)).size > before.size, 120_000, 'that it is charged')
  })
})
