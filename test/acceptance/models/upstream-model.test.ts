import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { SANDBOX_LIMITS, SANDBOX_PRICE } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import { saveUpstream } from '../../../server/src/upstreams/configure.ts'
import { startUpstream } from '../../upstreams/raw-upstream.ts'
import { ask, ids, makeCustomer, startInstallation, type Told } from '../installation.ts'
import { ALL_PROTOCOLS, question, streamed, upstreamOf } from './streams.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool } = installation
after(installation.stop)

const NAME = 'maker/story-teller'
const UPSTREAM_NAME = 'sandbox/text'
await saveModel({ pool }, { id: NAME, ...SANDBOX_LIMITS })
await setModelPrice({ pool }, { model: NAME, ...SANDBOX_PRICE })
for (const protocol of ALL_PROTOCOLS)
  await saveRoute({ pool, ids }, { model: NAME, slot: upstreamOf(protocol), protocol, upstreamModel: UPSTREAM_NAME })
const { secret } = await makeCustomer(pool)

const upstreamModel = ({ headers }: Told) => headers.get('x-farebox-upstream-model')

describe('the name of a model', () => {
  for (const protocol of ALL_PROTOCOLS)
    it(`is the caller's in a whole answer, with the upstream's in a header, and BASE-5 its cost in the usage: ${protocol}`, async () => {
      const { path, body } = question(protocol, NAME, 'a fox')
      const told = await ask(url, secret, path, { body })
      assert.equal(told.status, 200, told.text)
      assert.equal(upstreamModel(told), UPSTREAM_NAME)
      const { model, usage, usageMetadata } = told.json
      if (protocol !== 'gemini') assert.equal(model, NAME)
      assert.equal(Object(usage ?? usageMetadata).cost_usd, told.costUsd)
      assert.notEqual(told.costUsd, '0.000000000')
    })

  for (const protocol of ALL_PROTOCOLS)
    it(`stands in a header of a stream too, whose frames pass as they came: ${protocol}`, async () => {
      const { path, body } = streamed(protocol, NAME, 'a fox')
      const told = await ask(url, secret, path, { body })
      assert.equal(told.status, 200)
      assert.equal(upstreamModel(told), UPSTREAM_NAME)
      assert.equal(told.text.includes(NAME), false)
    })

  it('is left out where no header can have it, in streams and in whole answers', async () => {
    const upstream = await startUpstream(({ socket, body }) => {
      const isStream = Object(JSON.parse(body.toString())).stream === true
      const delta = { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'stop' }] }
      const whole = { choices: [{ index: 0, message: { content: 'a' }, finish_reason: 'stop' }] }
      const usage = { usage: { prompt_tokens: 9, completion_tokens: 1 } }
      const text = isStream
        ? `data: ${JSON.stringify({ ...delta, ...usage })}\n\ndata: [DONE]\n\n`
        : JSON.stringify({ ...whole, ...usage })
      const type = isStream ? 'text/event-stream' : 'application/json'
      socket.write(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${text.length}\r\n\r\n${text}`)
    })
    after(upstream.close)
    const slot = 'far'
    await saveUpstream(
      { pool, ids, seal: createSeal({ current: installation.masterKey }) },
      { slot, mode: 'test', kind: 'native', baseUrl: upstream.url, credential: new Secret('key') },
    )
    const model = 'far/model'
    await saveModel({ pool }, { id: model, ...SANDBOX_LIMITS })
    await setModelPrice({ pool }, { model, ...SANDBOX_PRICE })
    await saveRoute({ pool, ids }, { model, slot, protocol: 'openai', upstreamModel: '模型–1' })
    for (const make of [streamed, question]) {
      const { path, body } = make('openai', model, 'a fox')
      const told = await ask(url, secret, path, { body })
      assert.deepEqual([told.status, upstreamModel(told)], [200, null], told.text)
    }
  })

  it('is not told of what is refused before anybody is asked', async () => {
    const told = await ask(url, secret, '/v1/chat/completions', { body: { model: NAME } })
    assert.deepEqual([told.status, upstreamModel(told)], [400, null])
  })
})

describe('LIMIT-4 the limits of a key on messages', () => {
  const rates = ({ headers }: Told) => [...headers].filter(([name]) => name.startsWith('anthropic-ratelimit-'))

  it('are told by the names of its protocol too, on answers, streams and refusals, and nowhere else', async () => {
    for (const { path, body, status } of [
      { ...question('anthropic', NAME), status: 200 },
      { ...streamed('anthropic', NAME), status: 200 },
      { path: '/v1/messages', body: { model: NAME }, status: 400 },
    ]) {
      const told = await ask(url, secret, path, { body })
      assert.equal(told.status, status)
      const { headers } = told
      for (const kind of ['requests', 'tokens']) {
        const of = (part: string) => headers.get(`anthropic-ratelimit-${kind}-${part}`)
        assert.equal(of('limit'), headers.get(`x-ratelimit-limit-${kind}`))
        assert.equal(of('remaining'), headers.get(`x-ratelimit-remaining-${kind}`))
        assert.match(of('reset') ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
        assert.equal(Date.parse(of('reset') ?? '') / 1_000, Number(headers.get(`x-ratelimit-reset-${kind}`)))
      }
    }
    const { path, body } = question('openai', NAME)
    assert.deepEqual(rates(await ask(url, secret, path, { body })), [])
  })
})
