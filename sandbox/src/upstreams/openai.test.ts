import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { type IncomingMessage, request } from 'node:http'
import { after, beforeEach, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import type { JsonObject } from '../json.ts'
import { ASK, askRaw, assertMembers, framesIn, type Question, startTestSandbox, unchunked } from '../test-sandbox.ts'
import { MODEL_NAMES } from './models/magic-models.ts'
import { inputTokens, outputTokens } from './models/tokens.ts'

const sandbox = await startTestSandbox()
after(() => sandbox.stop())
beforeEach(async () => {
  await sandbox.ask({ path: '/journal', method: 'DELETE' })
})

const user = (content: unknown) => ({ role: 'user', content })
const question = (change: object): Question => ({ ...ASK.openai, body: { ...ASK.openai.body, ...change } })
const ask = (change: object = {}) => sandbox.ask(question(change))
const complete = async (change: object = {}) => (await ask(change)).json()
const lastEntry = async () => (await sandbox.journal()).at(-1)
const ended = () => until(async () => (await lastEntry())?.outcome !== 'open', PATIENCE_MS)
const TOOL = {
  type: 'function',
  function: {
    name: 'weather',
    parameters: {
      type: 'object',
      properties: {
        city: { type: 'string' },
        days: { type: 'integer' },
        exact: { type: 'boolean' },
        scale: { type: 'string', enum: ['C', 'F'] },
        places: { type: 'array', items: { type: 'number' } },
      },
    },
  },
} as const

type Delta = {
  role?: string
  content?: string | null
  tool_calls?: { function: { name?: string; arguments: string } }[]
}
type Chunk = {
  id: string
  choices: { index: number; delta: Delta; finish_reason: string | null }[]
  usage?: JsonObject | null
  error?: JsonObject
}

async function stream(change: object = {}) {
  const answer = await ask({ ...change, stream: true })
  const frames = framesIn(answer.text)
  const chunks: Chunk[] = frames.filter(({ data }) => data !== '[DONE]').map(({ data }) => JSON.parse(data))
  return { ...answer, frames, chunks }
}

function contentOf(chunks: readonly Chunk[], index = 0): string {
  const deltas = chunks.flatMap(({ choices }) => choices.filter((choice) => choice.index === index))
  return deltas.map(({ delta }) => delta.content ?? '').join('')
}

describe('openai, in one piece', () => {
  it('answers a chat.completion with message, reason and figures, and a request id', async () => {
    const answer = await ask()
    const body = answer.json()
    assertMembers(body, {
      id: 'string',
      object: 'string',
      created: 'integer',
      model: 'string',
      choices: 'array',
      usage: 'object',
      service_tier: 'string',
    })
    assert.equal(body.object, 'chat.completion')
    assert.deepEqual(body.choices, [
      {
        index: 0,
        message: { role: 'assistant', content: 'Echo: Hello', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ])
    assert.match(String(answer.headers['x-request-id']), /^req_/)
    assert.deepEqual(body.usage, {
      prompt_tokens: 2,
      completion_tokens: 4,
      total_tokens: 6,
      prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: 0,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    })
  })

  it('counts a token for every 3 bytes of all texts and tools together, and 256 for an image', async () => {
    const messages = [
      { role: 'system', content: 'ab' },
      user([
        { type: 'text', text: '请求' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAAAAAA' } },
      ]),
      { role: 'assistant', content: null, tool_calls: [{ id: 'c', function: { name: 'abc', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'c', content: 'x' },
    ]
    const { usage } = await complete({ messages, tools: [TOOL] })
    const texts = [JSON.stringify(TOOL), 'ab', '请求', 'abc{}', 'x']
    assert.equal(usage.prompt_tokens, inputTokens(texts, 1))
    assert.equal(usage.prompt_tokens, Math.ceil(Buffer.byteLength(texts.join('')) / 3) + 256)
  })

  it('counts the schema that an answer has to have as input, as vendors do, so that who leaves pays for no more of it', async () => {
    const properties = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`property_${n}`, { type: 'string' }]))
    const json_schema = { name: 'large', schema: { type: 'object', properties } }
    const response_format = { type: 'json_schema', json_schema }
    const plain = (await complete({})).usage.prompt_tokens
    const { prompt_tokens } = (await complete({ response_format })).usage
    assert.ok(prompt_tokens - plain >= Math.floor(JSON.stringify(response_format).length / 3))
  })

  it('stops at max_tokens and max_completion_tokens, at whole characters', async () => {
    for (const limit of ['max_tokens', 'max_completion_tokens']) {
      const { choices, usage } = await complete({ [limit]: 4, messages: [user('请求成功请求成功')] })
      assert.equal(choices[0].finish_reason, 'length')
      assert.equal(choices[0].message.content, 'Echo: 请求')
      assert.equal(usage.completion_tokens, 4)
    }
  })

  it('gives n choices and counts them all', async () => {
    const { choices, usage } = await complete({ n: 3, model: 'sandbox/text' })
    const texts = choices.map(({ message }: { message: { content: string } }) => message.content)
    assert.equal(new Set(texts).size, 3)
    assert.equal(usage.completion_tokens, outputTokens(...texts))
  })

  it('says how many messages it got', async () => {
    const messages = [user('a'), { role: 'assistant', content: 'b' }, user('c')]
    assert.equal((await complete({ messages })).choices[0].message.content, 'Echo: c (3 messages)')
    assert.match((await complete({ messages, model: 'sandbox/text' })).choices[0].message.content, /3 messages/)
  })

  it('calls the first tool, or the one that is named, with arguments of its schema', async () => {
    const other = { type: 'function', function: { name: 'other' } }
    const { choices, usage } = await complete({ model: 'any', tools: [TOOL, other] })
    const { message, finish_reason } = choices[0]
    assert.deepEqual([finish_reason, message.content], ['tool_calls', null])
    const [{ id, type, function: called }] = message.tool_calls
    assert.match(id, /^call_/)
    assert.deepEqual([type, called.name], ['function', 'weather'])
    assertMembers(JSON.parse(called.arguments), {
      city: 'string',
      days: 'integer',
      exact: 'boolean',
      scale: 'string',
      places: 'array',
    })
    assert.equal(JSON.parse(called.arguments).scale, 'C')
    assert.equal(usage.completion_tokens, outputTokens(called.name, called.arguments))
    const named = { type: 'function', function: { name: 'other' } }
    const second = await complete({ model: 'any', tools: [TOOL, other], tool_choice: named })
    assert.equal(second.choices[0].message.tool_calls[0].function.name, 'other')
    const none = await complete({ model: 'any', tools: [TOOL], tool_choice: 'none' })
    assert.equal(none.choices[0].message.content, 'Echo: Hello')
  })

  it('goes on with a text that mentions what the tool returned', async () => {
    const messages = [
      user('a'),
      { role: 'assistant', content: null, tool_calls: [] },
      { role: 'tool', content: '42 C' },
    ]
    const { choices } = await complete({ messages, tools: [TOOL] })
    assert.equal(choices[0].finish_reason, 'stop')
    assert.match(choices[0].message.content, /42 C/)
  })

  it('answers JSON where response_format asks for it', async () => {
    const schema = TOOL.function.parameters
    const fitting = await complete({ response_format: { type: 'json_schema', json_schema: { name: 's', schema } } })
    assert.deepEqual(Object.keys(JSON.parse(fitting.choices[0].message.content)), Object.keys(schema.properties))
    const any = await complete({ response_format: { type: 'json_object' } })
    assert.equal(typeof JSON.parse(any.choices[0].message.content).answer, 'string')
  })

  it('counts reasoning that nobody sees', async () => {
    const { usage, choices } = await complete({ reasoning_effort: 'low' })
    assert.equal(usage.completion_tokens_details.reasoning_tokens, 32)
    assert.equal(usage.completion_tokens, 32 + outputTokens(choices[0].message.content))
    const cut = await complete({ reasoning_effort: 'low', max_completion_tokens: 10 })
    assert.deepEqual([cut.choices[0].message.content, cut.usage.completion_tokens], ['', 10])
  })

  it('writes a prompt with a cache key into the cache, and reads what it knows of the next one', async () => {
    const first = { role: 'user', content: 'x'.repeat(3 * 10 * 128) }
    const details = async (change: object) => (await complete(change)).usage.prompt_tokens_details
    const all = inputTokens([first.content])
    const start = { messages: [first], prompt_cache_key: 'k' }
    assert.deepEqual(await details(start), { cached_tokens: 0, cache_write_tokens: all, audio_tokens: 0 })
    assert.deepEqual(await details(start), { cached_tokens: all, cache_write_tokens: 0, audio_tokens: 0 })
    const more = 'y'.repeat(3 * 128)
    const grown = { messages: [first, user(more)], prompt_cache_key: 'k' }
    assert.deepEqual(await details(grown), {
      cached_tokens: all,
      cache_write_tokens: inputTokens([first.content, more]) - all,
      audio_tokens: 0,
    })
    assert.equal((await details({ ...start, prompt_cache_key: 'other' })).cached_tokens, 0)
    assert.equal((await details({ messages: [first] })).cache_write_tokens, 0)
  })

  it('lists its models', async () => {
    const { headers } = ASK.openai
    const { object, data } = (await sandbox.ask({ path: '/openai/v1/models', headers })).json()
    assert.equal(object, 'list')
    assert.deepEqual(
      data.map(({ id }: { id: string }) => id),
      MODEL_NAMES,
    )
    assertMembers(data[0], { id: 'string', object: 'string', created: 'integer', owned_by: 'string' })
    assert.equal((await lastEntry())?.billed, false)
  })

  for (const [what, change, param] of [
    ['no model', { model: undefined }, 'model'],
    ['no messages', { messages: [] }, 'messages'],
    ['a role that is not there', { messages: [{ role: 'x' }] }, 'messages[0]'],
    ['max_tokens 0', { max_tokens: 0 }, 'max_tokens'],
    ['n 129', { n: 129 }, 'n'],
    ['a stream that is a word', { stream: 'yes' }, 'stream'],
    ['options of a stream that is none', { stream_options: { include_usage: true } }, 'stream_options'],
  ] as const) {
    it(`refuses ${what} in the vendor's words`, async () => {
      const refused = await ask(change)
      assert.equal(refused.status, 400)
      const { error } = refused.json()
      assert.deepEqual([error.type, error.param, error.code], ['invalid_request_error', param, null])
      assert.deepEqual([(await lastEntry())?.billed, (await lastEntry())?.tokens], [false, 0])
    })
  }

  it('survives what is nested beyond reason', async () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
    const body = `{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"x":${deep}}]}`
    assert.equal((await sandbox.ask({ ...ASK.openai, body })).status, 200)
    assert.equal((await ask()).status, 200)
  })
})

describe('openai, as a stream', () => {
  it('sends the role, deltas of a few characters, the reason, and [DONE]; no figures unless asked for', async () => {
    const { headers, frames, chunks } = await stream({ model: 'sandbox/text' })
    assert.match(String(headers['content-type']), /^text\/event-stream/)
    assert.match(String(headers['x-request-id']), /^req_/)
    assert.ok(frames.every(({ event }) => event === undefined))
    assert.equal(frames.at(-1)?.data, '[DONE]')
    assert.deepEqual(chunks[0]?.choices[0]?.delta, { role: 'assistant', content: '', refusal: null })
    assert.deepEqual(chunks.at(-1)?.choices[0], { index: 0, delta: {}, logprobs: null, finish_reason: 'stop' })
    assert.equal(new Set(chunks.map(({ id }) => id)).size, 1)
    for (const chunk of chunks.slice(1, -1)) {
      assert.equal('usage' in chunk, false)
      assert.ok(String(chunk.choices[0]?.delta.content).length <= 8)
      assert.equal(chunk.choices[0]?.finish_reason, null)
    }
    assert.equal(contentOf(chunks), (await complete({ model: 'sandbox/text' })).choices[0].message.content)
  })

  it('with include_usage: null on every chunk, and a last one without choices', async () => {
    const { chunks } = await stream({ stream_options: { include_usage: true } })
    const last = chunks.at(-1)
    assert.deepEqual(last?.choices, [])
    assert.deepEqual(last?.usage, (await complete()).usage)
    assert.ok(chunks.slice(0, -1).every(({ usage }) => usage === null))
  })

  it('takes n choices in turn', async () => {
    const { chunks } = await stream({ n: 2, model: 'sandbox/text' })
    const order = chunks.map(({ choices }) => choices[0]?.index)
    assert.deepEqual(order.slice(0, 6), [0, 1, 0, 1, 0, 1])
    const { choices } = await complete({ n: 2, model: 'sandbox/text' })
    for (const index of [0, 1]) assert.equal(contentOf(chunks, index), choices[index].message.content)
  })

  it('sends a call by its name and then its arguments', async () => {
    const { chunks } = await stream({ model: 'any', tools: [TOOL] })
    const calls = chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])
    assert.deepEqual(calls[0]?.function, { name: 'weather', arguments: '' })
    assertMembers(calls[0] ?? {}, { index: 'integer', id: 'string', type: 'string', function: 'object' })
    const whole = (await complete({ model: 'any', tools: [TOOL] })).choices[0].message.tool_calls[0].function
    assert.equal(calls.map((call) => call.function.arguments).join(''), whole.arguments)
    assert.equal(chunks.at(-1)?.choices[0]?.finish_reason, 'tool_calls')
    assert.equal((await sandbox.journal())[0]?.tokens, outputTokens('weather', whole.arguments))
  })

  it('never splits a character', async () => {
    const { chunks } = await stream({ messages: [user('请求成功😀😀 sandbox:delta-bytes=1')] })
    assert.equal(contentOf(chunks), 'Echo: 请求成功😀😀 sandbox:delta-bytes=1')
  })

  it('is in the journal with model, input, figures and the tokens that were sent', async () => {
    await stream({ model: 'sandbox/text', stream_options: { include_usage: true }, reasoning_effort: 'low' })
    const entry = await lastEntry()
    assert.deepEqual(
      [entry?.model, entry?.stream, entry?.input_tokens, entry?.billed, entry?.outcome],
      ['sandbox/text', true, 2, true, 'answered'],
    )
    assert.equal(entry?.tokens, entry?.usage?.completion_tokens)
    await complete()
    const other = await lastEntry()
    assert.deepEqual([other?.model, other?.stream, other?.tokens], ['sandbox/echo', false, 4])
    assert.equal(other?.usage?.completion_tokens, 4)
  })
})

describe('magic models of openai', () => {
  it('text: prose of about 60 words', async () => {
    const { content } = (await complete({ model: 'sandbox/text' })).choices[0].message
    assert.ok(Math.abs(content.split(' ').length - 60) < 10)
  })

  it('long: 2,000 tokens, or up to max_tokens', async () => {
    const { usage, choices } = await complete({ model: 'sandbox/long' })
    assert.deepEqual([usage.completion_tokens, choices[0].finish_reason], [2000, 'stop'])
    const cut = await complete({ model: 'sandbox/long', max_tokens: 500 })
    assert.deepEqual([cut.usage.completion_tokens, cut.choices[0].finish_reason], [500, 'length'])
  })

  it('another name answers like echo', async () => {
    for (const model of ['sandbox/other', 'gpt', 'constructor'])
      assert.equal((await complete({ model })).choices[0].message.content, 'Echo: Hello')
  })

  it('slow: a delta every 50 ms', async () => {
    const startedMs = performance.now()
    const { chunks } = await stream({ model: 'sandbox/slow', max_tokens: 20 })
    assert.equal(chunks.length, 2 + Math.ceil(60 / 8))
    assert.ok(performance.now() - startedMs >= 8 * 49)
  })

  it('cut-mid-stream: reset after half of the deltas, of which the journal tells', async () => {
    const body = { ...ASK.openai.body, model: 'sandbox/cut-mid-stream', stream: true }
    const { content, end } = await askRaw(sandbox.port, { ...ASK.openai, body })
    assert.equal(end, 'reset')
    const chunks: Chunk[] = framesIn(unchunked(content)).map(({ data }) => JSON.parse(data))
    const whole = (await complete({ model: 'sandbox/text' })).choices[0].message.content
    const got = contentOf(chunks)
    assert.ok(Math.abs(got.length / whole.length - 0.5) < 0.1, got)
    const [entry] = await sandbox.journal()
    assert.deepEqual([entry?.outcome, entry?.status, entry?.billed], ['reset', 200, true])
    assert.deepEqual([entry?.tokens, entry?.usage], [outputTokens(got), null])
    await assert.rejects(ask({ model: 'sandbox/cut-mid-stream' }))
  })

  it('no-usage and zero-usage', async () => {
    const asking = { stream_options: { include_usage: true } }
    assert.equal('usage' in (await complete({ model: 'sandbox/no-usage' })), false)
    assert.doesNotMatch((await stream({ model: 'sandbox/no-usage', ...asking })).text, /"usage":/)
    assert.equal((await lastEntry())?.tokens, 4)
    const { usage } = await complete({ model: 'sandbox/zero-usage' })
    assert.deepEqual([usage.prompt_tokens, usage.completion_tokens, usage.total_tokens], [0, 0, 0])
    assert.deepEqual((await stream({ model: 'sandbox/zero-usage', ...asking })).chunks.at(-1)?.usage, usage)
    assert.equal((await lastEntry())?.tokens, 4)
  })

  it('429, 500 and overloaded: the vendor’s errors, streamed or not', async () => {
    for (const isStreamed of [false, true]) {
      const limited = await ask({ model: 'sandbox/429', stream: isStreamed })
      assert.deepEqual([limited.status, limited.headers['retry-after']], [429, '7'])
      assert.equal(limited.json().error.code, 'rate_limit_exceeded')
      assert.equal((await ask({ model: 'sandbox/500', stream: isStreamed })).json().error.type, 'server_error')
      const overloaded = await ask({ model: 'sandbox/overloaded', stream: isStreamed })
      assert.deepEqual([overloaded.status, overloaded.json().error.code], [503, 'server_is_overloaded'])
      const entry = await lastEntry()
      assert.deepEqual([entry?.billed, entry?.tokens, entry?.model], [false, 0, 'sandbox/overloaded'])
    }
  })

  it('error-mid-stream: an error frame, then the end', async () => {
    const { status, chunks, frames } = await stream({ model: 'sandbox/error-mid-stream' })
    assert.equal(status, 200)
    assert.equal(chunks.at(-1)?.error?.type, 'server_error')
    assert.notEqual(frames.at(-1)?.data, '[DONE]')
    assert.equal((await lastEntry())?.tokens, outputTokens(contentOf(chunks.slice(0, -1))))
    assert.equal((await ask({ model: 'sandbox/error-mid-stream' })).status, 500)
  })

  it('no-end: all deltas, and neither reason nor [DONE]', async () => {
    const { chunks, text } = await stream({ model: 'sandbox/no-end' })
    assert.doesNotMatch(text, /DONE|"finish_reason":"/)
    assert.equal((await lastEntry())?.tokens, outputTokens(contentOf(chunks)))
    assert.equal((await lastEntry())?.outcome, 'answered')
  })

  it('garbage-frame: one frame that is no JSON, amid a whole answer', async () => {
    const { text } = await ask({ model: 'sandbox/garbage-frame', stream: true })
    const frames = framesIn(text).map(({ data }) => data)
    const garbage = frames.filter((data) => data.includes('oops'))
    assert.equal(garbage.length, 1)
    assert.throws(() => JSON.parse(garbage[0] ?? ''))
    assert.equal(frames.at(-1), '[DONE]')
  })

  it('hang: headers and the first delta, then silence', async () => {
    const body = { ...ASK.openai.body, model: 'sandbox/hang', stream: true }
    const { content, end } = await askRaw(sandbox.port, { ...ASK.openai, body })
    assert.equal(end, 'open')
    const frames = framesIn(unchunked(content))
    assert.equal(frames.length, 2)
    const [entry] = await sandbox.journal()
    assert.deepEqual([entry?.outcome, entry?.tokens], ['hung', 3])
  })

  it('tools: calls lookup even where no tool is given', async () => {
    const { choices } = await complete({ model: 'sandbox/tools' })
    assert.equal(choices[0].message.tool_calls[0].function.name, 'lookup')
  })

  it('checksum: the last delta is the SHA-256 of all before it', async () => {
    for (const change of [{ max_tokens: 60 }, { messages: [user('sandbox:output-tokens=60')] }]) {
      const { chunks } = await stream({ model: 'sandbox/checksum', ...change })
      const last = chunks.at(-2)?.choices[0]?.delta.content ?? ''
      const whole = contentOf(chunks)
      assert.equal(last, ` sha256:${hash('sha256', whole.slice(0, -last.length))}`)
      assert.equal(outputTokens(whole), 60)
      assert.equal(chunks.at(-1)?.choices[0]?.finish_reason, 'stop')
    }
  })
})

describe('a client of openai that leaves or lags', () => {
  /** Asks for a stream, and hands the answer over as soon as its first bytes are there. */
  function begin(change: object) {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const { path, headers, body } = ASK.openai
    const asking = request(sandbox.url + path, { method: 'POST', headers, agent: false }, resolve)
    asking.on('error', reject).end(JSON.stringify({ ...body, ...change, stream: true }))
    return promise
  }

  it('is left at once, with what was sent until then', async () => {
    const answer = await begin({ model: 'sandbox/slow' })
    let text = ''
    for await (const chunk of answer) {
      text += chunk
      if (text.split('\n\n').length > 4) break
    }
    await ended()
    const entry = await lastEntry()
    assert.deepEqual([entry?.outcome, entry?.status], ['left', 200])
    const sent = Number(entry?.tokens)
    assert.ok(sent > 0 && sent < 60, String(sent))
    await delay(120)
    assert.equal((await lastEntry())?.tokens, sent)
  })

  it('that does not read holds its stream back', async () => {
    // More than a machine's own buffers between two sockets hold.
    const choices = 10
    const tokens = choices * 1_000_000
    const messages = [user('sandbox:output-tokens=1000000 sandbox:delta-bytes=3000')]
    const answer = await begin({ messages, n: choices })
    answer.pause()
    await delay(200)
    const entry = await lastEntry()
    assert.equal(entry?.outcome, 'open')
    const held = Number(entry?.tokens)
    assert.ok(held < tokens, String(held))
    let bytes = 0
    for await (const chunk of answer) bytes += chunk.length
    assert.ok(bytes > 3 * tokens)
    await ended()
    assert.deepEqual([(await lastEntry())?.outcome, (await lastEntry())?.tokens], ['answered', tokens])
  })
})
