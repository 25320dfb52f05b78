import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { JsonObject } from '../json.ts'
import { ASK, framesIn, startTestSandbox } from '../test-sandbox.ts'
import { inputTokens, outputTokens } from './models/tokens.ts'

const sandbox = await startTestSandbox()
after(() => sandbox.stop())

const { headers } = ASK.openai
const ask = (change: object = {}, path = '/openai/v1/responses') =>
  sandbox.ask({ path, headers, body: { model: 'sandbox/echo', input: 'Hello', ...change } })
const respond = async (change: object = {}, path?: string) => (await ask(change, path)).json()
const TOOL = { type: 'function', name: 'weather', parameters: { properties: { city: { type: 'string' } } } }

type Event = { type: string; sequence_number: number; delta?: string; response?: JsonObject } & JsonObject

async function stream(change: object = {}, path?: string): Promise<readonly Event[]> {
  const frames = framesIn((await ask({ ...change, stream: true }, path)).text)
  const events: Event[] = frames.map(({ data }) => JSON.parse(data))
  assert.deepEqual(
    frames.map(({ event }) => event),
    events.map(({ type }) => type),
  )
  return events
}

const typesOf = (events: readonly Event[]) => [...new Set(events.map(({ type }) => type))]
const textOf = (events: readonly Event[]) =>
  events
    .filter(({ type }) => type === 'response.output_text.delta')
    .map(({ delta }) => delta)
    .join('')

describe('a response of the sandbox', () => {
  it('has the members of the vendor’s, and repeats its request', async () => {
    const { output, usage, ...rest } = await respond({ instructions: 'Be brief.', store: false, max_output_tokens: 50 })
    assert.deepEqual(
      [rest.object, rest.status, rest.instructions, rest.store, rest.max_output_tokens, rest.error],
      ['response', 'completed', 'Be brief.', false, 50, null],
    )
    const [{ type, role, content }] = output
    assert.deepEqual(
      [type, role, content[0].type, content[0].text],
      ['message', 'assistant', 'output_text', 'Echo: Hello'],
    )
    const [input, written] = [inputTokens(['Be brief.', 'Hello']), outputTokens('Echo: Hello')]
    assert.deepEqual(usage, {
      input_tokens: input,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: written,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input + written,
    })
    assert.equal((await respond()).store, true)
  })

  it('is cut by its limit, and says so', async () => {
    const { status, incomplete_details, usage } = await respond({ model: 'sandbox/long', max_output_tokens: 20 })
    assert.deepEqual(
      [status, incomplete_details, usage.output_tokens],
      ['incomplete', { reason: 'max_output_tokens' }, 20],
    )
    const deviant = '/deviant/ignores-max-output-tokens/openai/v1/responses'
    assert.ok((await respond({ model: 'sandbox/long', max_output_tokens: 20 }, deviant)).usage.output_tokens > 1_000)
  })

  it('calls a function, a custom tool, and one of a namespace', async () => {
    const [call] = (await respond({ model: 'any', tools: [TOOL] })).output
    assert.deepEqual(
      [call.type, call.name, Object.keys(JSON.parse(call.arguments))],
      ['function_call', 'weather', ['city']],
    )
    const [custom] = (await respond({ model: 'any', tools: [{ type: 'custom', name: 'patch' }] })).output
    assert.deepEqual([custom.type, custom.name, typeof custom.input], ['custom_tool_call', 'patch', 'string'])
    const [named] = (await respond({ model: 'any', tools: [{ type: 'namespace', name: 'n', tools: [TOOL] }] })).output
    assert.deepEqual([named.name, named.namespace], ['weather', 'n'])
    const output = { type: 'function_call_output', call_id: call.call_id, output: 'sunny' }
    const [answer] = (await respond({ input: [{ role: 'user', content: 'Hello' }, call, output], tools: [TOOL] }))
      .output
    assert.equal(answer.content[0].text, 'The tool returned: sunny (3 messages)')
  })

  it('has reasoning that is counted, told in short and kept encrypted where that is asked for', async () => {
    const { output, usage } = await respond({
      reasoning: { effort: 'low', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
    })
    const [reasoning] = output
    assert.deepEqual(
      [reasoning.type, reasoning.summary.length, usage.output_tokens_details.reasoning_tokens],
      ['reasoning', 1, 32],
    )
    assert.ok(reasoning.encrypted_content.length > 100)
    const [plain] = (await respond({ reasoning: { effort: 'low' } })).output
    assert.deepEqual([plain.summary, plain.encrypted_content], [[], undefined])
    const apart = await respond({}, '/deviant/reasoning-apart/openai/v1/responses')
    assert.ok(apart.usage.total_tokens > apart.usage.input_tokens + apart.usage.output_tokens)
  })

  it('reads a picture, a schema and a prompt that it has cached', async () => {
    const picture = { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'auto' }
    const content = [{ type: 'input_text', text: 'What?' }, picture]
    assert.equal((await respond({ input: [{ role: 'user', content }] })).usage.input_tokens, inputTokens(['What?'], 1))
    const format = { type: 'json_schema', name: 'a', schema: { properties: { city: { type: 'string' } } } }
    const [answer] = (await respond({ text: { format } })).output
    assert.deepEqual(Object.keys(JSON.parse(answer.content[0].text)), ['city'])
    const cached = { input: 'x'.repeat(3 * 1_024), prompt_cache_key: 'of responses' }
    assert.equal((await respond(cached)).usage.input_tokens_details.cache_write_tokens, 1_024)
    assert.equal((await respond(cached)).usage.input_tokens_details.cached_tokens, 1_024)
  })

  for (const [what, change, field] of [
    ['no input', { input: [] }, 'input'],
    ['an item of nobody', { input: [{ content: 'a' }] }, 'input[0]'],
    ['a reference to what it has not kept', { input: [{ type: 'item_reference', id: 'a' }] }, 'input[0]'],
    ['an earlier response', { previous_response_id: 'resp_1' }, 'previous_response_id'],
    ['the background', { background: true }, 'background'],
    ['no limit', { max_output_tokens: 0 }, 'max_output_tokens'],
    ['options of no stream', { stream_options: {} }, 'stream_options'],
  ] as const)
    it(`refuses ${what}`, async () => {
      const { status, json } = await ask(change)
      assert.deepEqual([status, json().error.param], [400, field])
    })
})

describe('a response of the sandbox as a stream', () => {
  it('has the events of the vendor’s, numbered, and says the same as one in one piece', async () => {
    const events = await stream({ model: 'sandbox/text' })
    assert.deepEqual(typesOf(events), [
      ...['response.created', 'response.in_progress', 'response.output_item.added', 'response.content_part.added'],
      ...['response.output_text.delta', 'response.output_text.done', 'response.content_part.done'],
      ...['response.output_item.done', 'response.completed'],
    ])
    assert.deepEqual(
      events.map(({ sequence_number }) => sequence_number),
      events.map((_, at) => at),
    )
    const last = events.at(-1)?.response
    const [message] = Object(last).output
    assert.equal(textOf(events), message.content[0].text)
    assert.ok(events.some(({ obfuscation }) => typeof obfuscation === 'string'))
    const plain = await stream({ stream_options: { include_obfuscation: false } })
    assert.ok(plain.every(({ obfuscation }) => obfuscation === undefined))
    assert.equal((await sandbox.journal()).at(-2)?.tokens, outputTokens(textOf(events)))
  })

  it('tells of reasoning and of calls in events of their own', async () => {
    const thought = typesOf(await stream({ reasoning: { effort: 'low', summary: 'auto' } }))
    assert.ok(thought.includes('response.reasoning_summary_text.delta'))
    const called = await stream({ model: 'any', tools: [TOOL] })
    const json = called
      .filter(({ type }) => type === 'response.function_call_arguments.delta')
      .map(({ delta }) => delta)
    assert.deepEqual(Object.keys(JSON.parse(json.join(''))), ['city'])
    const custom = typesOf(await stream({ model: 'any', tools: [{ type: 'custom', name: 'patch' }] }))
    assert.ok(custom.includes('response.custom_tool_call_input.done'))
  })

  it('fails as the models say', async () => {
    assert.equal((await stream({ model: 'sandbox/error-mid-stream' })).at(-1)?.type, 'error')
    const open = await stream({ model: 'sandbox/no-end' })
    assert.equal(open.at(-1)?.type, 'response.output_item.done')
    const silent = await stream({ model: 'sandbox/no-usage' })
    assert.equal(Object(silent.at(-1)?.response).usage, null)
    const cut = await stream({ model: 'sandbox/long', max_output_tokens: 9 })
    assert.equal(cut.at(-1)?.type, 'response.incomplete')
  })
})
