import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { JsonObject } from '../json.ts'
import { ASK, framesIn, startTestSandbox } from '../test-sandbox.ts'
import { inputTokens, outputTokens } from './models/tokens.ts'

const sandbox = await startTestSandbox()
after(() => sandbox.stop())

const TURNS = [
  { text: 'I write it.', calls: [{ name: 'write', arguments: { path: 'a.txt', content: 'one, two' } }] },
  {
    calls: [
      { name: 'read', arguments: { path: 'a.txt' } },
      { name: 'write', arguments: { path: 'b.txt' } },
    ],
  },
  { text: 'Done: {result}' },
]
const scripted = (turns: unknown) => `sandbox:script=${Buffer.from(JSON.stringify(turns)).toString('base64url')}`
const PROMPT = `Write a file. ${scripted(TURNS)}`

/** What an answer comes to, in whichever protocol. */
type Said = { readonly text: string; readonly calls: readonly [name: string, json: string][]; readonly stop: unknown }

/** A conversation in one protocol, of which a test says only what the tools have returned so far, answer by answer. */
type Talk = {
  readonly ask: (results: readonly (readonly string[])[], tools?: readonly string[]) => object
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly said: (body: JsonObject) => Said
  readonly streamPath?: string
  readonly streamed: (frames: readonly JsonObject[]) => Said
  readonly stops: { readonly call: unknown; readonly end: unknown }
  /** Of its calls, in a protocol that has them. */
  readonly ids?: (body: JsonObject) => readonly unknown[]
}

const calls = (results: readonly string[]) => results.map((_, at) => ({ name: 'read', id: `c${at}` }))
const list = (value: unknown): JsonObject[] => (Array.isArray(value) ? value : [])
const joined = (texts: readonly unknown[]) => texts.map((text) => text ?? '').join('')

const OPENAI: Talk = {
  path: ASK.openai.path,
  headers: ASK.openai.headers,
  ask: (answers, tools = ['read', 'write']) => ({
    model: 'sandbox/echo',
    messages: [
      { role: 'user', content: PROMPT },
      ...answers.flatMap((results) => [
        { role: 'assistant', tool_calls: calls(results).map(({ id, name }) => ({ id, function: { name } })) },
        ...results.map((content, at) => ({ role: 'tool', tool_call_id: `c${at}`, content })),
      ]),
    ],
    tools: tools.map((name) => ({ type: 'function', function: { name } })),
  }),
  said(body) {
    const [choice] = list(body.choices)
    const { content, tool_calls } = Object(choice?.message)
    return { text: content ?? '', calls: list(tool_calls).map(functionOf), stop: choice?.finish_reason }
  },
  streamed(frames) {
    const choices = frames.flatMap(({ choices }) => list(choices))
    const deltas = choices.map(({ delta }) => Object(delta))
    const pieces = deltas.flatMap(({ tool_calls }) => list(tool_calls))
    const places = [...new Set(pieces.map(({ index }) => index))]
    return {
      text: joined(deltas.map(({ content }) => content)),
      calls: places.map((place) => {
        const own = pieces.filter(({ index }) => index === place).map((piece) => Object(piece.function))
        return [joined(own.map(({ name }) => name)), joined(own.map((piece) => piece.arguments))]
      }),
      stop: choices.at(-1)?.finish_reason,
    }
  },
  stops: { call: 'tool_calls', end: 'stop' },
  ids: (body) => list(Object(list(body.choices)[0]?.message).tool_calls).map(({ id }) => id),
}

function functionOf(call: JsonObject): [string, string] {
  const { name, arguments: json } = Object(call.function)
  return [name, json]
}

const RESPONSES: Talk = {
  path: '/openai/v1/responses',
  headers: ASK.openai.headers,
  ask: (answers, tools = ['read', 'write']) => ({
    model: 'sandbox/echo',
    input: [
      { role: 'user', content: PROMPT },
      ...answers.flatMap((results) => [
        ...calls(results).map(({ id, name }) => ({ type: 'function_call', call_id: id, name, arguments: '{}' })),
        ...results.map((output, at) => ({ type: 'function_call_output', call_id: `c${at}`, output })),
      ]),
    ],
    tools: tools.map((name) => ({ type: 'function', name })),
  }),
  said(body) {
    const items = list(body.output)
    const parts = items.flatMap(({ content }) => list(content))
    const called = items.filter(({ type }) => type === 'function_call')
    return {
      text: joined(parts.map(({ text }) => text)),
      calls: called.map(({ name, arguments: json }) => [String(name), String(json)]),
      stop: body.status,
    }
  },
  streamed(frames) {
    const last = Object(frames.at(-1)?.response)
    const deltas = frames.filter(({ type }) => type === 'response.function_call_arguments.delta')
    const { calls: whole, ...said } = RESPONSES.said(last)
    const places = [...new Set(deltas.map(({ output_index }) => output_index))]
    const written = places.map((place) =>
      joined(deltas.filter(({ output_index }) => output_index === place).map(({ delta }) => delta)),
    )
    return { ...said, calls: whole.map(([name], at) => [name, written[at] ?? '']) }
  },
  stops: { call: 'completed', end: 'completed' },
  ids: (body) => list(body.output).flatMap(({ call_id }) => (call_id === undefined ? [] : [call_id])),
}

const ANTHROPIC: Talk = {
  path: ASK.anthropic.path,
  headers: ASK.anthropic.headers,
  ask: (answers, tools = ['read', 'write']) => ({
    model: 'sandbox/echo',
    max_tokens: 1000,
    messages: [
      { role: 'user', content: PROMPT },
      ...answers.flatMap((results) => [
        { role: 'assistant', content: calls(results).map((call) => ({ type: 'tool_use', input: {}, ...call })) },
        {
          role: 'user',
          content: results.map((content, at) => ({ type: 'tool_result', tool_use_id: `c${at}`, content })),
        },
      ]),
    ],
    tools: tools.map((name) => ({ name, input_schema: {} })),
  }),
  said(body) {
    const blocks = list(body.content)
    const used = blocks.filter(({ type }) => type === 'tool_use')
    return {
      text: joined(blocks.map(({ text }) => text)),
      calls: used.map(({ name, input }) => [String(name), JSON.stringify(input)]),
      stop: body.stop_reason,
    }
  },
  streamed(frames) {
    const deltas = frames.filter(({ type }) => type === 'content_block_delta')
    const starts = frames.filter(({ content_block: block }) => Object(block).type === 'tool_use')
    return {
      text: joined(deltas.map(({ delta }) => Object(delta).text)),
      calls: starts.map(({ index, content_block: block }) => {
        const own = deltas.filter((delta) => delta.index === index)
        return [Object(block).name, joined(own.map(({ delta }) => Object(delta).partial_json))]
      }),
      stop: Object(frames.find(({ type }) => type === 'message_delta')?.delta).stop_reason,
    }
  },
  stops: { call: 'tool_use', end: 'end_turn' },
  ids: (body) => list(body.content).flatMap(({ id }) => (id === undefined ? [] : [id])),
}

const GEMINI: Talk = {
  path: ASK.gemini.path,
  streamPath: '/gemini/v1beta/models/sandbox/echo:streamGenerateContent?alt=sse',
  headers: ASK.gemini.headers,
  ask: (answers, tools = ['read', 'write']) => ({
    contents: [
      { role: 'user', parts: [{ text: PROMPT }] },
      ...answers.flatMap((results) => [
        { role: 'model', parts: calls(results).map(({ name }) => ({ functionCall: { name, args: {} } })) },
        {
          role: 'user',
          parts: results.map((result) => ({ functionResponse: { name: 'read', response: { result } } })),
        },
      ]),
    ],
    tools: [{ functionDeclarations: tools.map((name) => ({ name })) }],
  }),
  said: (body) => GEMINI.streamed([body]),
  streamed(frames) {
    const candidates = frames.flatMap(({ candidates }) => list(candidates))
    const parts = candidates.flatMap(({ content }) => list(Object(content).parts))
    const called = parts.flatMap(({ functionCall }) => (functionCall === undefined ? [] : [Object(functionCall)]))
    return {
      text: joined(parts.map(({ text }) => text)),
      calls: called.map(({ name, args }) => [name, JSON.stringify(args)]),
      stop: candidates.at(-1)?.finishReason,
    }
  },
  stops: { call: 'STOP', end: 'STOP' },
}

const TALKS = { OPENAI, RESPONSES, ANTHROPIC, GEMINI }
const WRITE_A = ['write', '{"path":"a.txt","content":"one, two"}']
const READ_A = ['read', '{"path":"a.txt"}']
const WRITE_B = ['write', '{"path":"b.txt"}']

for (const [name, talk] of Object.entries(TALKS)) {
  const { path, headers, streamPath = path } = talk
  const whole = async (body: object) => (await sandbox.ask({ path, headers, body })).json()
  const streamed = async (body: object) => {
    const { text } = await sandbox.ask({ path: streamPath, headers, body: { ...body, stream: true } })
    const frames = framesIn(text.replaceAll('\r\n', '\n')).filter(({ data }) => data !== '[DONE]')
    return talk.streamed(frames.map(({ data }) => JSON.parse(data)))
  }

  describe(`a script, in ${name}`, () => {
    const { call, end } = talk.stops

    it('is played turn by turn, by the number of results in the conversation', async () => {
      const turns: [results: string[][], Said | object][] = [
        [[], { text: 'I write it.', calls: [WRITE_A], stop: call }],
        [[['ok']], { text: '', calls: [READ_A, WRITE_B], stop: call }],
      ]
      for (const [results, expected] of turns) {
        assert.deepEqual(talk.said(await whole(talk.ask(results))), expected)
        assert.deepEqual(await streamed(talk.ask(results)), expected)
      }
      const last = talk.said(await whole(talk.ask([['ok'], ['one', 'done']])))
      assert.match(last.text, /^Done: .*done.*$/)
      assert.deepEqual([last.calls, last.stop], [[], end])
      assert.deepEqual(await streamed(talk.ask([['ok'], ['one', 'done']])), last)
    })

    const { ids } = talk
    if (ids !== undefined)
      it('gives each call an id of its own', async () => {
        assert.equal(new Set(ids(await whole(talk.ask([['ok']])))).size, 2)
      })

    it('counts text, names and arguments as output', async () => {
      await whole(talk.ask([]))
      await streamed(talk.ask([]))
      const entries = (await sandbox.journal()).slice(-2)
      const written = outputTokens('I write it.', ...WRITE_A)
      assert.deepEqual(
        entries.map(({ tokens, bill }) => [tokens, bill?.output]),
        [
          [written, written],
          [written, written],
        ],
      )
    })

    it('is left alone by a request that does not offer its tools, and when it has ended', async () => {
      assert.match(talk.said(await whole(talk.ask([], []))).text, /^Echo: Write a file/)
      const body = JSON.parse(
        JSON.stringify(talk.ask([['ok']])).replaceAll(scripted(TURNS), scripted(TURNS.slice(0, 1))),
      )
      assert.match(talk.said(await whole(body)).text, /^The tool returned: /)
    })
  })
}

describe('a script', () => {
  const ask = (directive: string, change: object = {}) =>
    sandbox.ask({
      path: ASK.openai.path,
      headers: ASK.openai.headers,
      body: { model: 'sandbox/echo', messages: [{ role: 'user', content: directive }], ...change },
    })

  it('is refused where it is none', async () => {
    const wrong = ['{}', [], 'x', [{ say: 'x' }], [{ text: 1 }], [{ calls: [{}] }], [{ calls: ['a'] }], [[]]]
    for (const turns of [...wrong, Array.from({ length: 33 }, () => ({ text: 'x' }))]) {
      const { status, text } = await ask(scripted(turns))
      assert.deepEqual([status, /sandbox_error/.test(text)], [400, true], JSON.stringify(turns))
    }
    assert.equal((await ask('sandbox:script=oops')).status, 400)
  })

  it('is cut by the limit of output, in a text or in a call', async () => {
    const tools = [{ type: 'function', function: { name: 'write' } }]
    const limited = async (max_tokens: number) =>
      OPENAI.said((await ask(scripted(TURNS), { tools, max_tokens })).json())
    assert.deepEqual(await limited(2), { text: 'I writ', calls: [], stop: 'length' })
    assert.deepEqual(await limited(7), { text: 'I write it.', calls: [['write', '{"pat']], stop: 'length' })
  })

  it('is counted with the prompt that has it', async () => {
    const { usage } = (await ask(scripted(TURNS.slice(-1)))).json()
    assert.equal(Object(usage).prompt_tokens, inputTokens([scripted(TURNS.slice(-1))]))
  })

  it('sends a text to a tool that is no function', async () => {
    const patch = '*** Begin Patch\n*** End Patch'
    const { output } = (
      await sandbox.ask({
        path: RESPONSES.path,
        headers: RESPONSES.headers,
        body: {
          model: 'sandbox/echo',
          input: scripted([{ calls: [{ name: 'apply_patch', arguments: patch }] }]),
          tools: [{ type: 'custom', name: 'apply_patch' }],
        },
      })
    ).json()
    assert.deepEqual([output[0].type, output[0].input], ['custom_tool_call', patch])
  })

  it('may call a tool that the conversation brings along', async () => {
    const tools = [{ type: 'namespace', name: 'files', tools: [{ type: 'function', name: 'write' }] }]
    const input = [
      { type: 'additional_tools', role: 'developer', tools },
      { role: 'user', content: scripted([{ calls: [{ name: 'write' }] }]) },
    ]
    const { path, headers } = RESPONSES
    const { output } = (await sandbox.ask({ path, headers, body: { model: 'sandbox/echo', input } })).json()
    assert.deepEqual([output[0].name, output[0].namespace, output[0].arguments], ['write', 'files', '{}'])
  })

  it('can come by control', async () => {
    const directives = [scripted([{ text: 'By control.' }]).replace('sandbox:', '')]
    await sandbox.ask({ path: '/control', body: { upstream: 'openai', directives } })
    assert.equal(OPENAI.said((await ask('Hello')).json()).text, 'By control.')
    assert.equal(OPENAI.said((await ask('Hello')).json()).text, 'Echo: Hello')
  })
})
