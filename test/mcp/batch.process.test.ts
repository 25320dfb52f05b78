import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { until } from '../../harness/until.ts'
import { revokeKey } from '../../server/src/identity/keys.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { ACTOR, chargesOf, ids, startInstallation } from '../acceptance/installation.ts'
import { makeAgent, makeAgentKey } from './agents.ts'
import { callBody, callHeaders, callRaw } from './raw-agent.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
after(() => installation.stop())
const { pool, sandbox } = installation
const url = `${installation.gateways[0]?.agentUrl}/mcp`
const agent = await makeAgent(pool)

const TAG = { operation_id: 'tag_detail', arguments: { tag_name: 'cats' } }
const CHAT = {
  operation_id: 'chat_completions',
  arguments: { model: 'sandbox/text', messages: [{ role: 'user', content: 'a short story' }], max_tokens: 100 },
}
/** It is answered when a caller who leaves has left. */
const SLOW = { operation_id: 'tag_detail', arguments: { tag_name: 'cats sandbox:delay=1500' } }
const VIDEO = { model: 'sandbox/video', input: { prompt: 'a fox in the snow' } }

describe('several at once', () => {
  const batch = (given: object, secret = agent.secret, meta = {}) => callRaw(url, secret, 'batch_use', given, meta)

  it('trap: every call of a round is recorded, each with its own result, charge or refusal', async () => {
    const before = await chargesOf(pool, agent.accountId)
    const { structured, meta } = await batch({
      calls: [TAG, { operation_id: 'nothing' }, { ...TAG, max_price_usd: 0.001 }, CHAT],
      max_total_usd: 1,
    })
    const [first, second, third, fourth] = structured.results
    assert.equal(first.cost_usd, '0.001450000')
    assert.equal(second.error?.code, 'resource_not_found')
    assert.equal(third.error?.code, 'cost_cap_exceeded')
    assert.equal(third.error.cap_usd, '0.001000000')
    assert.equal(fourth.status, 200)
    const charged = [...(await chargesOf(pool, agent.accountId))].filter(([id]) => !before.has(id))
    assert.deepEqual(charged.map(([id]) => id).toSorted(), [first.request_id, fourth.request_id].toSorted())
    const sum = charged.reduce((total, [, amount]) => total + amount, 0n)
    assert.equal(usd(structured.total.cost_usd), sum)
    assert.equal(usd(meta['farebox/call'].cost_usd), sum)
    assert.equal(structured.total.failed, 2)
  })

  it('never costs more than its cap in all: what does not fit says what is left and what would be needed', async () => {
    const { structured } = await batch({ calls: [TAG, TAG, TAG], max_total_usd: 0.003 })
    const [first, second, third] = structured.results
    assert.deepEqual([first.cost_usd, second.cost_usd], ['0.001450000', '0.001450000'])
    assert.equal(third.error?.code, 'cost_cap_exceeded')
    assert.deepEqual([third.error.left_usd, third.error.needed_total_usd], ['0.000100000', '0.004350000'])
    assert.equal(structured.total.cost_usd, '0.002900000')
  })

  it('loses nothing of its cap to calls that were sent to nobody', async () => {
    // A live key asks live upstreams, of which there is none.
    const { secret } = await makeAgent(pool, { mode: 'live' })
    const { structured, text } = await batch({ calls: [TAG, TAG], max_total_usd: 0.002 }, secret)
    for (const one of structured.results) {
      assert.equal(one.error?.code, 'not_configured')
      assert.deepEqual([one.cost_usd, one.cost_at_most_usd], ['0.000000000', undefined])
    }
    assert.deepEqual([structured.total.cost_usd, structured.total.cost_at_most_usd], ['0.000000000', undefined])
    assert.match(text, /Nothing was charged for this request/)
  })

  it('says which member of which call is wrong, and what is wrong with a cap', async () => {
    const wrong = async (given: object) => Object((await batch({ max_total_usd: 1, ...given })).structured.error)
    const { code, message, param } = await wrong({ calls: [TAG, { operation_id: 5 }] })
    assert.equal(code, 'invalid_request')
    assert.deepEqual([message, param], ['"calls[1].operation_id" must be a text.', 'calls[1].operation_id'])
    for (const max_total_usd of [1_000_000_001, 1e16])
      assert.equal(
        (await wrong({ calls: [TAG], max_total_usd })).message,
        '"max_total_usd" must be at most 1000000000.',
      )
    const { structured, text } = await batch({ calls: [{ ...TAG, max_price_usd: 0.0009999999999 }], max_total_usd: 1 })
    assert.equal(structured.results[0].error?.cap_usd, '0.000999999')
    assert.match(text, /max_price_usd was 0\.000999999 \(0\.0009999999999 has more than 9 decimals\)/)
  })

  it('counts what is held for a task against the cap', async () => {
    const video = { operation_id: 'video_synthesis', arguments: VIDEO }
    const { secret } = await makeAgentKey(pool, agent.workspaceId)
    const { structured: details } = await callRaw(url, secret, 'get_details', video)
    const most = Number(details.price_of_arguments.max.usd)
    const { structured } = await batch({ calls: [video, TAG], max_total_usd: most }, secret)
    assert.equal(structured.results[1].error?.code, 'cost_cap_exceeded')
    assert.equal(usd(structured.total.held_usd), usd(details.price_of_arguments.max.usd))
  })

  it('begins no further call once its caller has left', async () => {
    const { secret, accountId } = await makeAgent(pool)
    const controller = new AbortController()
    const journal = (await sandbox.journal()).length
    const asked = fetch(url, {
      method: 'POST',
      signal: controller.signal,
      headers: {
        authorization: `Bearer ${secret}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        ...callHeaders('batch_use'),
      },
      body: JSON.stringify(callBody('batch_use', { calls: [SLOW, TAG, TAG], max_total_usd: 1 })),
    }).catch(() => undefined)
    await until(async () => (await sandbox.journal()).length > journal, 60_000, 'that the upstream is asked')
    // Its answer can not come before the gateway knows that the caller has left.
    sandbox.pause()
    controller.abort()
    await asked
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    sandbox.resume()
    await until(async () => (await chargesOf(pool, accountId)).size === 1, 120_000, 'that the first is charged')
    // What came after it would have been there within this time many times over.
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    assert.equal((await chargesOf(pool, accountId)).size, 1)
  })

  it('begins no further call once its key is revoked', async () => {
    const { secret, accountId, keyId } = await makeAgent(pool)
    const journal = (await sandbox.journal()).length
    const asked = batch({ calls: Array.from({ length: 20 }, () => SLOW), max_total_usd: 1 }, secret)
    await until(async () => (await sandbox.journal()).length > journal, 60_000, 'that the upstream is asked')
    await revokeKey({ pool, ids }, ACTOR, keyId)
    const { structured } = await asked
    assert.match(structured.results.at(-1).not_begun, /credential is not valid/)
    assert.equal((await chargesOf(pool, accountId)).size, 20 - structured.total.failed)
  })

  it('takes an idempotency key for all of them', async () => {
    const meta = { 'farebox/idempotency-key': 'batch-1' }
    const given = { calls: [TAG, TAG], max_total_usd: 1 }
    const first = await batch(given, agent.secret, meta)
    const again = await batch(given, agent.secret, meta)
    assert.deepEqual(
      again.structured.results.map((one: { error: { code: string } }) => one.error?.code),
      ['idempotency_completed', 'idempotency_completed'],
    )
    assert.equal(again.structured.results[1].error.first_request_id, first.structured.results[1].request_id)
  })

  it('counts what was charged before against its cap when it is sent again, and takes at most 20 calls', async () => {
    const meta = { 'farebox/idempotency-key': 'batch-2' }
    await batch({ calls: [TAG, TAG], max_total_usd: 0.003 }, agent.secret, meta)
    const { structured } = await batch({ calls: [TAG, TAG, TAG], max_total_usd: 0.003 }, agent.secret, meta)
    assert.equal(structured.results[2].error?.code, 'cost_cap_exceeded')
    assert.deepEqual([structured.total.charged_before_usd, structured.total.cost_usd], ['0.002900000', '0.000000000'])
    const many = await batch({ calls: Array.from({ length: 21 }, () => TAG), max_total_usd: 1 })
    assert.equal(many.structured.error?.code, 'invalid_request')
  })
})
