import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type OpenAI from 'openai'
import { SANDBOX_LIMITS, SANDBOX_PRICE } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { formatUsd, nanos } from '../../../server/src/kernel/money.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import { saveUpstream } from '../../../server/src/upstreams/configure.ts'
import { type Received, startUpstream } from '../../upstreams/raw-upstream.ts'
import { ask, type Customer, ids, makeCustomer, startInstallation } from '../installation.ts'
import { connectOpenai } from './sdk-openai.ts'
import { ALL_PROTOCOLS, hear, costOf as priceOf, settled, streamed, tokensIn } from './streams.ts'

/** Where a stream tells what it cost, and that this is what the usage log has. */
const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox, masterKey } = installation
after(installation.stop)

type Chunk = OpenAI.Chat.ChatCompletionChunk
type Asked = Partial<OpenAI.Chat.ChatCompletionCreateParamsStreaming>

const body = (more: Asked): OpenAI.Chat.ChatCompletionCreateParamsStreaming => ({
  model: 'sandbox/text',
  messages: [{ role: 'user', content: 'a short story' }],
  max_completion_tokens: 200,
  ...more,
  stream: true,
})
const WITH_USAGE: Asked = { stream_options: { include_usage: true } }
const TOOL = { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } }
const TOOLS: Asked = { tools: [{ type: 'function', function: TOOL }] }

async function streamOf(customer: Customer, more: Asked) {
  const asked = connectOpenai({ url, secret: customer.secret }).chat.completions.create(body(more))
  const { data, request_id } = await asked.withResponse()
  const chunks: Chunk[] = []
  for await (const chunk of data) chunks.push(chunk)
  return { chunks, id: request_id ?? '' }
}

/** Each place in an event at which it tells a cost, with the event's own place. */
function costsIn(events: readonly unknown[]): readonly (readonly [place: number, where: string, cost: string])[] {
  return events.flatMap((event, place) => {
    const { cost_usd: beside, usage: own, usageMetadata, response, error } = Object(event)
    const usage = own ?? response?.usage
    const details = Object(error).details
    const told = {
      beside,
      usage: Object(usage ?? usageMetadata).cost_usd,
      error: Object(error).cost_usd ?? details?.cost_usd ?? details?.[0]?.metadata?.cost_usd,
    }
    return Object.entries(told).flatMap(([where, cost]) =>
      typeof cost === 'string' ? [[place, where, cost] as const] : [],
    )
  })
}

const finishPlaces = (chunks: readonly Chunk[]) =>
  chunks.flatMap(({ choices }, at) => (choices.some(({ finish_reason }) => finish_reason !== null) ? [at] : []))

/** The one cost that the usage log has, in the record, the list and the report alike. */
async function loggedCost({ secret }: Customer, id: string): Promise<string> {
  const record = Object((await ask(url, secret, `/v1/requests/${id}`)).json.cost)
  const { data } = (await ask(url, secret, '/v1/requests')).json
  const listed = (data as { id: string; cost: { usd: string } }[]).map((one) => [one.id, one.cost.usd])
  assert.deepEqual(listed, [[id, record.usd]])
  const { totals } = (await ask(url, secret, '/v1/usage?start_time=1')).json
  assert.deepEqual([Object(totals).requests, Object(totals).charged_micros_usd], [1, record.micros_usd])
  return record.usd
}

describe('BASE-5 what an OpenAI stream cost', { concurrency: 4 }, () => {
  const WAYS: readonly (readonly [title: string, more: Asked, finishes: number])[] = [
    ['a text', {}, 1],
    ['a text, where usage is refused', { stream_options: { include_usage: false } }, 1],
    ['two choices', { n: 2 }, 2],
    ['a call of a tool', TOOLS, 1],
    ['two calls of a tool', { ...TOOLS, n: 2 }, 2],
    ['an upstream that reports no usage', { model: 'sandbox/no-usage' }, 1],
  ]

  for (const [title, more, finishes] of WAYS)
    it(`is in the chunk with the last finish reason where usage was not asked for: ${title}`, async () => {
      const customer = await makeCustomer(pool)
      const { chunks, id } = await streamOf(customer, more)
      const last = finishPlaces(chunks).at(-1)
      assert.deepEqual([finishPlaces(chunks).length, last], [finishes, chunks.length - 1])
      for (const chunk of chunks) assert.ok(chunk.choices.length > 0 && !('usage' in chunk), JSON.stringify(chunk))
      const cost = await loggedCost(customer, id)
      assert.match(cost, /^0\.\d*[1-9]\d*$/)
      assert.deepEqual(costsIn(chunks), [[last, 'beside', cost]])
    })

  for (const [title, more, finishes] of WAYS.filter(([, { stream_options }]) => stream_options === undefined))
    it(`is in the usage where that was asked for, and else in the last chunk that there is: ${title}`, async () => {
      const customer = await makeCustomer(pool)
      const { chunks, id } = await streamOf(customer, { ...more, ...WITH_USAGE })
      const where = more.model === 'sandbox/no-usage' ? 'beside' : 'usage'
      assert.equal(finishPlaces(chunks).length, finishes)
      assert.equal(chunks.filter(({ choices }) => choices.length === 0).length, where === 'usage' ? 1 : 0)
      assert.deepEqual(costsIn(chunks), [[chunks.length - 1, where, await loggedCost(customer, id)]])
    })

  it('has the chunks of the upstream and no other, whoever asks', async () => {
    const shapes = (chunks: readonly unknown[]) =>
      chunks.map((chunk) => {
        const { choices, usage } = Object(chunk)
        // The sandbox makes ids from the bytes that it was sent.
        return JSON.stringify([choices, usage]).replaceAll(/"id":"[^"]*"/g, '')
      })
    for (const more of [{}, { n: 2 }, TOOLS, { ...TOOLS, n: 2 }]) {
      const { chunks } = await streamOf(await makeCustomer(pool), more)
      const direct = await hear(sandbox.url, 'sandbox-key', {
        path: '/openai/v1/chat/completions',
        body: { ...body(more) },
      })
      assert.equal(direct.status, 200)
      assert.deepEqual(shapes(chunks), shapes(direct.events.slice(0, -1)))
    }
  })

  it('is in the completion that the SDK makes of the stream, which it finds whole', async () => {
    const customer = await makeCustomer(pool)
    const runner = connectOpenai({ url, secret: customer.secret }).chat.completions.stream(body({}))
    const { choices, ...completion } = await runner.finalChatCompletion()
    assert.deepEqual([choices.length, choices[0]?.finish_reason], [1, 'stop'])
    const { data } = (await ask(url, customer.secret, '/v1/requests')).json
    const [{ cost }] = data as [{ cost: { usd: string } }]
    assert.equal(Object(completion).cost_usd, cost.usd)
  })
})

describe('BASE-5 what a stream of the other protocols cost', { concurrency: 4 }, () => {
  for (const protocol of ['openai_responses', 'anthropic', 'gemini'] as const)
    for (const [model, where] of [
      ['sandbox/text', 'usage'],
      ['sandbox/no-usage', 'beside'],
    ] as const)
      it(`is in the frame with the finish reason, whether or not that has a usage: ${protocol}, ${model}`, async () => {
        const customer = await makeCustomer(pool)
        const { id, events, end } = await hear(url, customer.secret, streamed(protocol, model))
        assert.equal(end, 'clean')
        const finish = events.findIndex((event) => {
          const { type, delta, candidates } = Object(event)
          if (type === 'response.completed') return true
          return delta?.stop_reason !== undefined || candidates?.[0]?.finishReason !== undefined
        })
        assert.equal(finish, events.length - (protocol === 'anthropic' ? 2 : 1))
        assert.deepEqual(costsIn(events), [[finish, where, await loggedCost(customer, id)]])
      })
})

describe('BASE-5 what a stream cost that did not end well', { concurrency: 4 }, () => {
  for (const protocol of ALL_PROTOCOLS)
    it(`is in the error that it ends with, where that is ours: ${protocol}`, async () => {
      const customer = await makeCustomer(pool)
      const { id, events, end } = await hear(url, customer.secret, streamed(protocol, 'sandbox/cut-mid-stream'))
      assert.equal(end, 'broken')
      const cost = await loggedCost(customer, id)
      assert.match(cost, /[1-9]/)
      assert.deepEqual(costsIn(events), [[events.length - 1, 'error', cost]])
    })
})

const EVENTS = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'
const frame = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const chunked = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
const says = (content: string) => frame({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })
const STOP = frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
const USAGE = { prompt_tokens: 11, completion_tokens: 1, total_tokens: 12 }
const REPORTED_COST = formatUsd(nanos(priceOf(tokensIn(USAGE))))
const REST = [frame({ choices: [], usage: USAGE }), 'data: [DONE]\n\n']
const END = '0\r\n\r\n'

/** An upstream that writes its own bytes. */
const MODEL = 'odd/last-frames'
let answer: (request: Received) => void = () => {}
const upstream = await startUpstream((request) => answer(request))
await saveUpstream(
  { pool, ids, seal: createSeal({ current: masterKey }) },
  { slot: 'odd', mode: 'test', kind: 'native', baseUrl: upstream.url, credential: new Secret('key') },
)
await saveModel({ pool }, { id: MODEL, ...SANDBOX_LIMITS })
await setModelPrice({ pool }, { model: MODEL, ...SANDBOX_PRICE })
await saveRoute({ pool, ids }, { model: MODEL, slot: 'odd', protocol: 'openai' })
const question = (more: Record<string, unknown> = {}) => streamed('openai', MODEL, '', more)
const written = (...frames: readonly string[]) => EVENTS + frames.map(chunked).join('')

describe('BASE-5 what a stream cost whose last frames are not as they should be', () => {
  for (const [title, more] of [
    ['without usage', {}],
    ['with usage', WITH_USAGE],
  ] as const)
    it(`is what was counted where the connection breaks after the finish reason, before the usage: ${title}`, async () => {
      const customer = await makeCustomer(pool)
      answer = ({ socket }) => void socket.end(written(says('Seven.'), STOP))
      const { id, events, end } = await hear(url, customer.secret, question(more))
      assert.deepEqual([end, events.length], ['clean', 2])
      assert.deepEqual(costsIn(events), [[1, 'beside', await loggedCost(customer, id)]])
    })

  it('is told to nobody where the caller leaves while the finish reason is held back, and is what was reported', async () => {
    const customer = await makeCustomer(pool)
    let finish = () => {}
    answer = ({ socket }) => {
      socket.write(written(says('Seven.'), STOP))
      finish = () => void socket.write(REST.map(chunked).join('') + END)
    }
    const { events, end } = await hear(url, customer.secret, question(), { afterSilenceMs: 300 })
    assert.deepEqual([end, events.length, costsIn(events)], ['cut', 1, []])
    finish()
    await settled(pool, customer.accountId)
    const { data } = (await ask(url, customer.secret, '/v1/requests')).json
    const [{ id }] = data as [{ id: string }]
    assert.equal(await loggedCost(customer, id), REPORTED_COST)
  })

  it('is in the record alone where there are fewer choices than were asked for: no chunk is added for it', async () => {
    const customer = await makeCustomer(pool)
    answer = ({ socket }) => void socket.write(written(says('Seven.'), STOP, ...REST) + END)
    const { id, events } = await hear(url, customer.secret, question({ n: 2 }))
    assert.deepEqual([events.length, events.at(-1), costsIn(events)], [3, '[DONE]', []])
    assert.equal(await loggedCost(customer, id), REPORTED_COST)
  })
})
