import assert from 'node:assert/strict'
import { after, beforeEach, describe, it } from 'node:test'
import type { JsonObject } from '../json.ts'
import { ASK, askRaw, assertMembers, framesIn, startTestSandbox, unchunked } from '../test-sandbox.ts'
import { MODEL_NAMES } from './models/magic-models.ts'
import { inputTokens, outputTokens } from './models/tokens.ts'

const sandbox = await startTestSandbox()
after(() => sandbox.stop())
beforeEach(async () => {
  await sandbox.ask({ path: '/journal', method: 'DELETE' })
})

const user = (content: unknown) => ({ role: 'user', content })
const ask = (change: object = {}, headers: Readonly<Record<string, string>> = ASK.anthropic.headers) =>
  sandbox.ask({ ...ASK.anthropic, headers, body: { ...ASK.anthropic.body, ...change } })
const say = async (change: object = {}) => (await ask(change)).json()
const lastEntry = async () => (await sandbox.journal()).at(-1)
const TOOL = { name: 'weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } } as const
const THINKING = { type: 'enabled', budget_tokens: 1024 } as const

type Event = {
  type: string
  index?: number
  message?: { usage?: JsonObject }
  content_block?: JsonObject
  delta?: Readonly<Record<string, string>>
  usage?: JsonObject
  error?: JsonObject
}

function eventsIn(text: string): Event[] {
  return framesIn(text).map(({ event, data }) => {
    const json: Event = JSON.parse(data)
    assert.equal(json.type, event)
    return json
  })
}

async function stream(change: object = {}) {
  const answer = await ask({ ...change, stream: true })
  return { ...answer, events: eventsIn(answer.text) }
}

function textOf(events: readonly Event[]): string {
  return events.map(({ delta }) => delta?.thinking ?? delta?.text ?? delta?.partial_json ?? '').join('')
}

/** The types of events and deltas, those that repeat only once. */
function outlineOf(events: readonly Event[]): string[] {
  const types = events.map(({ type, delta }) => (type === 'content_block_delta' ? String(delta?.type) : type))
  return types.filter((type, at) => type !== types[at - 1])
}

describe('anthropic, in one piece', () => {
  it('answers a message with content, reason and figures, and a request id', async () => {
    const answer = await ask()
    const body = answer.json()
    assertMembers(body, {
      id: 'string',
      type: 'string',
      role: 'string',
      model: 'string',
      content: 'array',
      stop_reason: 'string',
      stop_sequence: 'null',
      usage: 'object',
    })
    assert.deepEqual(body.content, [{ type: 'text', text: 'Echo: Hello' }])
    assert.deepEqual([body.type, body.stop_reason], ['message', 'end_turn'])
    assert.match(String(answer.headers['request-id']), /^req_/)
    assert.deepEqual(body.usage, {
      input_tokens: 2,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      output_tokens: 4,
      output_tokens_details: { thinking_tokens: 0 },
      service_tier: 'standard',
    })
  })

  it('takes the key as Bearer too, and x-api-key before it', async () => {
    const version = { 'anthropic-version': '2023-06-01' }
    assert.equal((await ask({}, { ...version, authorization: 'Bearer sandbox-key' })).status, 200)
    const both = { ...version, authorization: 'Bearer sandbox-key', 'x-api-key': 'wrong' }
    const refused = await ask({}, both)
    assert.equal(refused.status, 401)
    assert.equal(refused.json().error.type, 'authentication_error')
    assert.equal(refused.headers['request-id'], refused.json().request_id)
  })

  it('refuses a request without version, and what the newest version has dropped', async () => {
    const unversioned = await ask({}, { 'x-api-key': 'sandbox-key' })
    assert.equal(unversioned.status, 400)
    assert.match(unversioned.json().error.message, /anthropic-version/)
    const newest = { ...ASK.anthropic.headers, 'anthropic-version': '2026-10-21' }
    assert.equal((await ask({ temperature: 1 }, newest)).status, 400)
    assert.equal((await ask({ temperature: 1 })).status, 200)
    assert.equal((await ask({}, newest)).status, 200)
    assert.equal((await lastEntry())?.headers['anthropic-version'], '2026-10-21')
  })

  it('counts a token for every 3 bytes of all texts and tools together, and 256 for an image', async () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAAAAAA' } }
    const messages = [
      user([{ type: 'text', text: '请求' }, image]),
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'weather', input: { city: 'x' } }] },
      user([{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'sunny' }, image] }]),
    ]
    const change = { system: 'ab', tools: [TOOL], messages }
    const texts = [JSON.stringify(TOOL), 'ab', '请求', 'weather{"city":"x"}', 'sunny']
    const { usage, content } = await say(change)
    assert.equal(usage.input_tokens, inputTokens(texts, 2))
    assert.match(content[0].text, /sunny/)
    const counted = await sandbox.ask({
      ...ASK.anthropic,
      path: '/anthropic/v1/messages/count_tokens',
      body: { ...change, model: 'm' },
    })
    assert.deepEqual(counted.json(), { input_tokens: usage.input_tokens })
    assert.deepEqual([(await lastEntry())?.billed, (await lastEntry())?.tokens], [false, null])
  })

  it('stops at max_tokens, thinking included', async () => {
    const cut = await say({ max_tokens: 3 })
    assert.deepEqual([cut.stop_reason, cut.usage.output_tokens, cut.content[0].text], ['max_tokens', 3, 'Echo: Hel'])
    const thoughtful = await say({ max_tokens: 10, thinking: THINKING })
    assert.deepEqual([thoughtful.stop_reason, thoughtful.usage.output_tokens], ['max_tokens', 10])
  })

  it('thinks first where it may', async () => {
    const { content, usage } = await say({ thinking: THINKING })
    assert.deepEqual(
      content.map(({ type }: { type: string }) => type),
      ['thinking', 'text'],
    )
    assertMembers(content[0], { type: 'string', thinking: 'string', signature: 'string' })
    assert.equal(usage.output_tokens_details.thinking_tokens, 40)
    assert.equal(usage.output_tokens, outputTokens(content[0].thinking, content[1].text))
    const little = await say({ thinking: { type: 'enabled', budget_tokens: 5 } })
    assert.equal(little.usage.output_tokens_details.thinking_tokens, 5)
  })

  it('echoes what a person has said to an agent, whose tools it calls only where it has to', async () => {
    const content = [
      { type: 'text', text: '<system-reminder>Be brief.</system-reminder>' },
      { type: 'text', text: 'Hello' },
    ]
    const asked = { tools: [TOOL], messages: [{ role: 'user', content }] }
    assert.deepEqual((await say(asked)).content, [{ type: 'text', text: 'Echo: Hello' }])
    assert.equal((await say({ ...asked, tool_choice: { type: 'any' } })).content[0].name, 'weather')
  })

  it('calls the first tool, or the one that is named, unless it may not', async () => {
    const { content, stop_reason, usage } = await say({ model: 'any', tools: [TOOL] })
    assert.equal(stop_reason, 'tool_use')
    assertMembers(content[0], { type: 'string', id: 'string', name: 'string', input: 'object' })
    assertMembers(content[0].input, { city: 'string' })
    assert.equal(usage.output_tokens, outputTokens('weather', JSON.stringify(content[0].input)))
    const named = { tools: [TOOL, { name: 'other' }], tool_choice: { type: 'tool', name: 'other' } }
    assert.equal((await say(named)).content[0].name, 'other')
    assert.equal((await say({ model: 'any', tools: [TOOL], tool_choice: { type: 'none' } })).content[0].type, 'text')
  })

  it('writes what is marked into the cache, and reads the longest prefix that it knows', async () => {
    const mark = { cache_control: { type: 'ephemeral' } }
    const system = [{ type: 'text', text: 'a system text that is kept '.repeat(150), ...mark }]
    const kept = inputTokens([system[0]?.text ?? ''])
    const cacheOf = async (change: object) => {
      const { usage } = await say(change)
      return [usage.cache_creation_input_tokens, usage.cache_read_input_tokens, usage.input_tokens]
    }
    const all = inputTokens([system[0]?.text ?? '', 'Hello'])
    assert.deepEqual(await cacheOf({ system }), [kept, 0, all - kept])
    assert.deepEqual(await cacheOf({ system }), [0, kept, all - kept])
    assert.equal((await lastEntry())?.input_tokens, all)
    const marked = { system, messages: [user([{ type: 'text', text: 'Hello', ...mark }])] }
    assert.deepEqual(await cacheOf(marked), [all - kept, kept, 0])
    assert.deepEqual(await cacheOf({ ...marked, model: 'another' }), [all, 0, 0])
    assert.deepEqual(await cacheOf({ system: [{ ...system[0], text: 'too short' }] }), [0, 0, 5])
  })

  it('caches for an hour, caches tools, and all of a request', async () => {
    const hour = { cache_control: { type: 'ephemeral', ttl: '1h' } }
    const tool = { ...TOOL, description: 'What it is for. '.repeat(200), ...hour }
    const first = await say({ model: 'any', tools: [tool], cache_control: { type: 'ephemeral' } })
    const [tools, all] = [inputTokens([JSON.stringify(tool)]), inputTokens([JSON.stringify(tool), 'Hello'])]
    assert.deepEqual(first.usage.cache_creation, {
      ephemeral_5m_input_tokens: all - tools,
      ephemeral_1h_input_tokens: tools,
    })
    const second = await say({ model: 'any', tools: [tool], cache_control: { type: 'ephemeral' } })
    assert.equal(second.usage.cache_read_input_tokens, all)
  })

  it('takes a coding agent’s request: a system message in the middle, adaptive thinking and deferred tools', async () => {
    const { headers } = ASK.anthropic
    const mark = { cache_control: { type: 'ephemeral' } }
    const described = { description: 'What this tool is for. '.repeat(150), input_schema: TOOL.input_schema }
    const ids = JSON.stringify({ device_id: 'a'.repeat(64), session_id: '0b4e9d2c-1111-4222-8333-444455556666' })
    const body = {
      model: 'some-model-that-nobody-knows',
      max_tokens: 32_000,
      stream: true,
      thinking: { type: 'adaptive' },
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
      output_config: { effort: 'medium' },
      metadata: { user_id: ids },
      system: [
        { type: 'text', text: 'You are an agent that writes code.', ...mark },
        { type: 'text', text: 'Rules. '.repeat(2_000), ...mark },
      ],
      tools: [
        { name: 'Later', ...described, defer_loading: true },
        ...Array.from({ length: 20 }, (_, at) => ({ name: `Tool${at}`, ...described })),
      ],
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Read the code and say what it does.', ...mark }] },
        { role: 'system', content: 'Some tools are found by a search only: Later.' },
      ],
    }
    assert.ok(JSON.stringify(body).length > 80_000)
    const session = { 'anthropic-beta': 'context-management-2025-06-27', 'x-claude-code-session-id': 'a' }
    const question = { path: '/anthropic/v1/messages?beta=true', headers: { ...headers, ...session }, body }
    const answer = await sandbox.ask(question)
    assert.equal(answer.status, 200)
    const events = framesIn(answer.text).map(({ data }) => JSON.parse(data))
    const blocks = events.flatMap(({ content_block: block }) => (block ? [block] : []))
    assert.deepEqual(
      blocks.map(({ type, name }) => [type, name]),
      [
        ['thinking', undefined],
        ['tool_use', 'Tool0'],
      ],
    )
    const entry = await lastEntry()
    assert.equal(entry?.bill?.cache_write_5m, events[0].message.usage.cache_creation_input_tokens)
    assert.ok(Number(entry?.bill?.cache_write_5m) > 20_000)
    assert.equal(entry?.query, 'beta=true')
  })

  it('calls a deferred tool once a result refers to it', async () => {
    const later = { ...TOOL, name: 'Later', defer_loading: true }
    const searched = (content: object[]) => [
      { role: 'user', content: 'Look for it.' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'Search', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content }] },
    ]
    const calls = async (content: object[]) => {
      const script = [{ calls: [{ name: 'Search' }] }, { calls: [{ name: 'Later' }] }]
      const system = `sandbox:script=${Buffer.from(JSON.stringify(script)).toString('base64url')}`
      const { content: blocks } = await say({ model: 'any', tools: [later], system, messages: searched(content) })
      return blocks.filter(({ type }: { type: string }) => type === 'tool_use').length
    }
    assert.equal(await calls([{ type: 'text', text: 'Later' }]), 0)
    assert.equal(await calls([{ type: 'tool_reference', tool_name: 'Later' }]), 1)
  })

  it('lists its models', async () => {
    const { headers } = ASK.anthropic
    const list = (await sandbox.ask({ path: '/anthropic/v1/models', headers })).json()
    assert.deepEqual([list.has_more, list.first_id, list.data.length], [false, MODEL_NAMES[0], MODEL_NAMES.length])
    assertMembers(list.data[0], { type: 'string', id: 'string', display_name: 'string', created_at: 'string' })
  })

  for (const [what, change] of [
    ['no model', { model: undefined }],
    ['no max_tokens', { max_tokens: undefined }],
    ['no messages', { messages: [] }],
    ['a system message at the start of the messages', { messages: [{ role: 'system', content: 'a' }] }],
    ['thinking without a budget', { thinking: { type: 'enabled' } }],
  ] as const) {
    it(`refuses ${what} in the vendor's words`, async () => {
      const refused = await ask(change)
      assert.equal(refused.status, 400)
      const { type, error, request_id: id } = refused.json()
      assert.deepEqual([type, error.type, id], ['error', 'invalid_request_error', refused.headers['request-id']])
    })
  }
})

describe('anthropic, as a stream', () => {
  it('sends the events of a text in their order, with the same text and figures as in one piece', async () => {
    const { headers, events } = await stream({ model: 'sandbox/text' })
    assert.match(String(headers['content-type']), /^text\/event-stream/)
    assert.deepEqual(outlineOf(events), [
      'message_start',
      'content_block_start',
      'ping',
      'text_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
    const whole = await say({ model: 'sandbox/text' })
    assert.equal(textOf(events), whole.content[0].text)
    assert.deepEqual(events[0]?.message?.usage, { ...whole.usage, output_tokens: 1 })
    assert.deepEqual(events.at(-2)?.delta, { stop_reason: 'end_turn', stop_sequence: null })
    assert.deepEqual(events.at(-2)?.usage, whole.usage)
    const [entry] = await sandbox.journal()
    assert.deepEqual([entry?.tokens, entry?.usage], [whole.usage.output_tokens, whole.usage])
  })

  it('sends thinking, its signature, and then the call', async () => {
    const { events } = await stream({ model: 'any', thinking: THINKING, tools: [TOOL] })
    assert.deepEqual(outlineOf(events), [
      'message_start',
      'content_block_start',
      'ping',
      'thinking_delta',
      'signature_delta',
      'content_block_stop',
      'content_block_start',
      'input_json_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
    const { content, usage } = await say({ model: 'any', thinking: THINKING, tools: [TOOL] })
    assert.equal(textOf(events), content[0].thinking + JSON.stringify(content[1].input))
    const block = events.find(({ index, type }) => index === 1 && type === 'content_block_start')?.content_block
    assert.deepEqual({ ...block, id: '' }, { type: 'tool_use', id: '', name: 'weather', input: {} })
    assert.match(String(block?.id), /^toolu_/)
    assert.equal((await sandbox.journal())[0]?.tokens, usage.output_tokens)
  })
})

describe('magic models of anthropic', () => {
  it('cut-mid-stream: reset after half of the deltas, of which the journal tells', async () => {
    const body = { ...ASK.anthropic.body, model: 'sandbox/cut-mid-stream', stream: true }
    const { content, end } = await askRaw(sandbox.port, { ...ASK.anthropic, body })
    assert.equal(end, 'reset')
    const events = eventsIn(unchunked(content))
    const [entry] = await sandbox.journal()
    assert.deepEqual([entry?.outcome, entry?.tokens], ['reset', outputTokens(textOf(events))])
    assert.equal(entry?.usage?.output_tokens, 1)
  })

  it('no-usage and zero-usage', async () => {
    assert.equal('usage' in (await say({ model: 'sandbox/no-usage' })), false)
    assert.doesNotMatch((await stream({ model: 'sandbox/no-usage' })).text, /"usage":/)
    const { events } = await stream({ model: 'sandbox/zero-usage' })
    for (const usage of [events[0]?.message?.usage, events.at(-2)?.usage])
      assert.deepEqual([usage?.input_tokens, usage?.output_tokens], [0, 0])
    assert.equal((await lastEntry())?.tokens, 4)
  })

  it('429, 500 and overloaded: the vendor’s errors', async () => {
    for (const [model, status, type] of [
      ['sandbox/429', 429, 'rate_limit_error'],
      ['sandbox/500', 500, 'api_error'],
      ['sandbox/overloaded', 529, 'overloaded_error'],
    ] as const) {
      const answer = await ask({ model, stream: true })
      assert.deepEqual([answer.status, answer.json().error.type], [status, type])
    }
    assert.equal((await ask({ model: 'sandbox/429' })).headers['retry-after'], '7')
  })

  it('error-mid-stream, no-end and garbage-frame', async () => {
    const failed = (await stream({ model: 'sandbox/error-mid-stream' })).events
    assert.deepEqual([failed.at(-1)?.type, failed.at(-1)?.error?.type], ['error', 'overloaded_error'])
    const endless = (await stream({ model: 'sandbox/no-end' })).events
    assert.equal(endless.at(-1)?.type, 'content_block_stop')
    const frames = framesIn((await ask({ model: 'sandbox/garbage-frame', stream: true })).text)
    assert.equal(frames.filter(({ data }) => data.includes('oops')).length, 1)
    assert.equal(frames.at(-1)?.event, 'message_stop')
  })

  it('hang: headers and the first delta, then silence', async () => {
    const body = { ...ASK.anthropic.body, model: 'sandbox/hang', stream: true }
    const { content, end } = await askRaw(sandbox.port, { ...ASK.anthropic, body })
    assert.equal(end, 'open')
    assert.equal(eventsIn(unchunked(content)).at(-1)?.type, 'content_block_delta')
    assert.deepEqual([(await lastEntry())?.outcome, (await lastEntry())?.tokens], ['hung', 3])
  })
})
