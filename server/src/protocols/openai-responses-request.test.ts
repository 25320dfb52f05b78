import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Fault } from '../kernel/fault.ts'
import { ask } from './openai-responses-request.ts'
import type { ModelAsk, ModelLimits } from './protocol.ts'
import { PLAIN_PROFILE } from './route-profile.ts'

const LIMITS: ModelLimits = { contextWindow: 200_000, outputCap: 4_096, outputMost: 64_000, partTokens: { image: 256 } }

function askFor(
  body: Record<string, unknown>,
  text = JSON.stringify({ model: 'm', input: 'Hello', ...body }),
): ModelAsk {
  return ask({ body: JSON.parse(text), rawBody: Buffer.from(text), headers: {} }, LIMITS)
}

function refuses(body: Record<string, unknown>, expected: RegExp): void {
  assert.throws(
    () => askFor(body),
    (error) => error instanceof Fault && error.code === 'invalid_request' && expected.test(error.message),
    JSON.stringify(body),
  )
}

const sent = (request: ModelAsk, outputLimit: string | null = null) =>
  request.bodyFor('theirs', { ...PLAIN_PROFILE, outputLimit }).toString()

describe('a request for a response', () => {
  it('has the model’s cap where it names no limit, and is sent with it', () => {
    const { outputLimit, isDefaultLimit, choices, isStream } = askFor({})
    assert.deepEqual([outputLimit, isDefaultLimit, choices, isStream], [4_096, true, 1, false])
    const text = '{ "model": "m",\n "input" : "Hello" }'
    assert.equal(
      sent(askFor({}, text)),
      '{ "model": "theirs",\n "input" : "Hello","max_output_tokens":4096,"store":false }',
    )
  })

  it('keeps every byte of one that says everything', () => {
    const text = '{"model":"m", "input":"Hello", "max_output_tokens":1e1, "store":false, "stream":true}'
    const request = askFor({}, text)
    assert.deepEqual([request.outputLimit, request.isStream], [10, true])
    assert.equal(request.bodyFor('m').toString(), text)
    assert.equal(request.bodyFor('m', { ...PLAIN_PROFILE, outputLimit: 'max_output_tokens' }).toString(), text)
  })

  it('is stored by no upstream, whatever is left out', () => {
    for (const store of [undefined, null, false])
      assert.equal(JSON.parse(sent(askFor({ store }))).store, false, `${store}`)
    refuses(
      { store: true },
      /"store" is not supported: nothing is stored here\. Send the whole conversation in "input"/,
    )
    refuses({ store: 'false' }, /"store" is not supported/)
  })

  it('is refused as a stream where what that repeats is too large for it', () => {
    const long = 'x'.repeat(2_097_152)
    refuses({ stream: true, instructions: long }, /beside "input" are too large for a stream/)
    // An upstream may write each of these in six bytes.
    refuses({ stream: true, metadata: { note: 'é'.repeat(350_000) } }, /beside "input" are too large for a stream/)
    for (const body of [{ instructions: long }, { stream: true, input: long }, { stream: true, instructions: 'é' }])
      assert.doesNotThrow(() => askFor(body))
  })

  it('tells how much of it a reply repeats', () => {
    const repeated = (body: Record<string, unknown>) => askFor(body).repeatedBytes ?? 0
    const long = 'x'.repeat(500_000)
    assert.ok(repeated({ instructions: long }) >= 500_000)
    assert.ok(repeated({ tools: [{ type: 'function', name: 'f', description: long }], stream: true }) >= 500_000)
    assert.equal(repeated({ input: long }), repeated({}))
  })

  it('has the limit in the member that the route’s upstreams heed', () => {
    assert.equal(JSON.parse(sent(askFor({}), 'max_output_tokens')).max_output_tokens, 4_096)
    assert.equal(JSON.parse(sent(askFor({ max_output_tokens: 7 }), 'max_output_tokens')).max_output_tokens, 7)
  })

  it('is refused beyond the model’s limit, and by any other name of one', () => {
    refuses({ max_output_tokens: 64_001 }, /"max_output_tokens" is 64001; the limit of this model is 64000/)
    for (const limit of [0, -1, 1.5, '7']) refuses({ max_output_tokens: limit }, /"max_output_tokens" must be/)
    for (const name of ['max_tokens', 'max_completion_tokens']) refuses({ [name]: 7 }, /use "max_output_tokens"/)
  })

  it('needs an input', () => {
    for (const input of [undefined, null, [], 5, {}]) refuses({ input }, /"input" must be a text or an array/)
    refuses({ instructions: [{ role: 'user', content: 'a' }] }, /"instructions" must be a text/)
  })

  it('refers to nothing that is stored elsewhere, by whatever name', () => {
    for (const name of ['previous_response_id', 'conversation'])
      refuses({ [name]: 'a' }, new RegExp(`"${name}" is not supported: nothing is stored here`))
    refuses({ prompt: { id: 'a' } }, /"prompt" is not supported.*Send it in "instructions"/)
    refuses({ input: [{ type: 'item_reference', id: 'msg_1' }] }, /"input\[0\]\.type".*nothing is stored here/)
    // The protocol takes an item that has an id alone for a reference.
    for (const type of [undefined, null])
      refuses(
        {
          input: [
            { role: 'user', content: 'a' },
            { type, id: 'msg_1' },
          ],
        },
        /"input\[1\]" has no role/,
      )
    askFor({ previous_response_id: null, conversation: null, prompt: null, background: false })
    refuses({ background: true }, /"background" is not supported: a call ends with its answer/)
  })

  it('has no tools that an upstream runs, at whatever depth', () => {
    refuses({ tools: [{ type: 'web_search' }] }, /"web_search".*Codex: web_search = "disabled"/)
    for (const type of [
      'file_search',
      'code_interpreter',
      'image_generation',
      'mcp',
      'local_shell',
      'shell',
      'Function',
    ])
      refuses({ tools: [{ type }] }, /"tools\[0\]\.type" may not be/)
    refuses({ tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'mcp' }] }] }, /"tools\[0\]\.tools\[0\]\.type"/)
    refuses({ input: [{ type: 'additional_tools', tools: [{ type: 'mcp' }] }] }, /"input\[0\]\.tools\[0\]\.type"/)
    refuses({ tool_choice: { type: 'web_search_preview' } }, /"tool_choice\.type"/)
    refuses(
      { input: [{ type: 'mcp_approval_response', approve: true }] },
      /"input\[0\]\.type".*Declare it as a function/,
    )
  })

  it('answers in text alone, whatever a route passes on', () => {
    for (const modalities of [['text', 'image'], ['audio'], 'audio'])
      refuses({ modalities }, /"modalities" must be "text"/)
    refuses({ audio: { voice: 'a' } }, /"audio" is not supported: spoken answers/)
    assert.deepEqual(askFor({ modalities: ['text'], audio: null }).unknownMembers, [])
  })
})

describe('the bound of the input of a response', () => {
  const most = (input: readonly unknown[], more = {}) => askFor({ input, ...more }).inputMost
  const USER = { role: 'user', content: 'a' }
  const LEAST = most([USER])
  const LONG = 'word '.repeat(200)

  it('has every text, wherever it stands', () => {
    for (const item of [
      { role: 'user', content: LONG },
      { role: 'assistant', content: [{ type: 'output_text', text: LONG, annotations: [] }] },
      { role: 'assistant', content: [{ type: 'refusal', refusal: LONG }] },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: LONG },
      { type: 'function_call_output', call_id: 'c', output: LONG },
      { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: LONG }] },
      { type: 'custom_tool_call', call_id: 'c', name: 'f', input: LONG },
      { type: 'custom_tool_call_output', call_id: 'c', output: LONG },
      { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: LONG }] },
      { type: 'reasoning', id: 'r', summary: [], encrypted_content: LONG },
      { type: 'compaction', encrypted_content: LONG },
      { type: 'agent_message', author: LONG, recipient: 'a', content: [] },
      { type: 'agent_message', author: 'a', recipient: 'b', content: [{ type: 'input_text', text: LONG }] },
      {
        ...{ type: 'agent_message', author: 'a', recipient: 'b' },
        content: [{ type: 'encrypted_content', encrypted_content: LONG }],
      },
    ])
      assert.ok(most([USER, item]) >= LEAST + LONG.length, JSON.stringify(item).slice(0, 60))
    assert.ok(most([USER], { instructions: LONG }) >= LEAST + LONG.length)
    assert.ok(most([USER], { tools: [{ type: 'function', name: 'f', description: LONG }] }) >= LEAST + LONG.length)
    const format = { type: 'json_schema', name: 'a', schema: { description: LONG } }
    assert.ok(most([USER], { text: { format } }) >= LEAST + LONG.length)
  })

  it('has the share of each tool, those of namespaces and of items too', () => {
    const tool = { type: 'function', name: 'f' }
    const flat = most([USER], { tools: [tool, tool, tool] })
    assert.ok(most([USER], { tools: [{ type: 'namespace', name: 'n', tools: [tool, tool, tool] }] }) > flat)
    assert.ok(most([USER, { type: 'additional_tools', role: 'developer', tools: [tool] }]) > LEAST + 1_024)
  })

  it('has a picture as such, a document in its place as a file, and no sound', () => {
    const picture = (source: object) => most([{ role: 'user', content: [{ type: 'input_image', ...source }] }])
    for (const source of [
      { image_url: 'data:image/png;base64,AAAA' },
      { image_url: 'https://a.invalid/a' },
      { file_id: 'f' },
    ])
      assert.ok(picture(source) < 1_000, JSON.stringify(source))
    assert.equal(picture({ image_url: 'data:application/pdf;base64,AAAA' }), LIMITS.contextWindow)
    const file = { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' }
    assert.equal(most([{ role: 'user', content: [file] }]), LIMITS.contextWindow)
    // As another protocol writes it.
    assert.equal(picture({ image_url: { url: 'data:application/pdf;base64,AAAA' } }), LIMITS.contextWindow)
    const output = [{ type: 'input_image', image_url: 'data:image/png;base64,AAAA' }]
    for (const name of ['summary', 'content']) {
      const thought = (type: string) =>
        most([USER, { type: 'reasoning', [name]: [{ type, image_url: 'https://a.invalid' }] }])
      assert.ok(thought('input_image') >= LEAST + 256)
      for (const type of ['input_file', 'of_tomorrow']) assert.equal(thought(type), LIMITS.contextWindow)
    }
    const returned = { type: 'function_call_output', call_id: 'c', output }
    assert.ok(most([USER, returned]) >= LEAST + 256)
    refuses({ input: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] }, /audio/)
    refuses({ input: [{ role: 'user', content: [{ ...file, file_data: 'data:audio/wav;base64,AA' }] }] }, /audio/)
  })

  it('is the context window where an item is of a kind that nobody knows', () => {
    const { inputMost, unknownMembers } = askFor({ input: [USER, { type: 'of_tomorrow', id: 'a' }] })
    assert.deepEqual([inputMost, unknownMembers], [LIMITS.contextWindow, ['input[1].type: "of_tomorrow"']])
  })

  it('is counted as text where an upstream reports nothing', () => {
    const { inputText } = askFor({ instructions: 'Be brief.', input: [{ role: 'user', content: 'Hello' }] })
    assert.equal(inputText(), 'Be brief.\nHello')
  })
})

/** In the shape that Codex sends, by what is known of it on the wire; no recording. */
const CODEX = {
  model: 'm',
  instructions: 'You are Codex, based on GPT-5.',
  input: [
    { type: 'message', role: 'developer', content: [{ type: 'input_text', text: '<permissions>' }] },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Fix the test.' }] },
    { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }], content: null, encrypted_content: 'gAAAAB' },
    { type: 'function_call', name: 'exec_command', arguments: '{"cmd":"ls"}', call_id: 'call_1' },
    { type: 'function_call_output', call_id: 'call_1', output: 'README.md' },
    { type: 'custom_tool_call', status: 'completed', call_id: 'call_2', name: 'apply_patch', input: '*** Begin Patch' },
    { type: 'custom_tool_call_output', call_id: 'call_2', output: 'Done.' },
    {
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'Fixed.' }],
      phase: 'final_answer',
    },
  ],
  tools: [
    { type: 'function', name: 'exec_command', description: 'Runs.', strict: false, parameters: { type: 'object' } },
    {
      type: 'custom',
      name: 'apply_patch',
      description: 'Edits.',
      format: { type: 'grammar', syntax: 'lark', definition: 'a' },
    },
    {
      type: 'namespace',
      name: 'mcp__docs',
      description: 'Reads.',
      tools: [{ type: 'function', name: 'read', description: 'Reads.', strict: false, parameters: { type: 'object' } }],
    },
  ],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  reasoning: { effort: 'medium', summary: 'auto' },
  store: false,
  stream: true,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: '019a8f0e-0000-7000-8000-000000000000',
  text: { verbosity: 'low' },
  client_metadata: { 'x-codex-installation-id': 'a', 'x-codex-window-id': 'b:0' },
}

describe('the request of Codex', () => {
  it('is taken, with nothing in it that is not known, and passes as it came but for its limit', () => {
    const text = JSON.stringify(CODEX)
    const request = askFor({}, text)
    assert.deepEqual([request.unknownMembers, request.isStream, request.isDefaultLimit], [[], true, true])
    assert.ok(request.inputMost < 6_000, `${request.inputMost}`)
    assert.equal(request.bodyFor('m').toString(), `${text.slice(0, -1)},"max_output_tokens":4096}`)
  })

  it('is refused with what to set where its search is on', () => {
    const tools = [...CODEX.tools, { type: 'web_search', external_web_access: false }]
    refuses({ ...CODEX, tools }, /"tools\[3\]\.type" may not be "web_search".*web_search = "disabled"/)
  })
})
