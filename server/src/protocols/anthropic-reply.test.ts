import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createReader, textOf, usageOf } from './anthropic-reply.ts'
import type { StreamReader } from './protocol.ts'

function frame(type: string, members: object = {}): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
}

const START_USAGE = {
  input_tokens: 12,
  cache_creation_input_tokens: 5,
  cache_read_input_tokens: 30,
  output_tokens: 1,
}
const START = frame('message_start', { message: { id: 'm', role: 'assistant', content: [], usage: START_USAGE } })
const STOP = frame('message_stop')
const PING = frame('ping')

function says(text: string): string {
  return frame('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
}

function ends(stop_reason: string | null, usage?: object): string {
  return frame('message_delta', { delta: { stop_reason, stop_sequence: null }, usage })
}

function push(reader: StreamReader, ...frames: readonly string[]): string {
  return Buffer.concat(reader.push(Buffer.from(frames.join('')))).toString()
}

function release(reader: StreamReader, cost = '0.00012'): string {
  return Buffer.concat(reader.release(cost)).toString()
}

describe('the usage of a message', () => {
  it('has the caches apart from the input already', () => {
    assert.deepEqual(usageOf({ usage: { ...START_USAGE, output_tokens: 9 } }), {
      input: 12,
      output: 9,
      cacheRead: 30,
      cacheWrite: 5,
    })
  })

  it('takes a zero as a report, and hears nothing in what is no plausible count', () => {
    assert.deepEqual(usageOf({ usage: { input_tokens: 0, output_tokens: 0 } }), { input: 0, output: 0 })
    for (const bad of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e13, '5', true, null, [5], {}]) {
      const usage = {
        input_tokens: bad,
        output_tokens: bad,
        cache_read_input_tokens: bad,
        cache_creation_input_tokens: bad,
      }
      assert.deepEqual(usageOf({ usage }), {})
    }
    for (const json of [undefined, null, 'x', [], {}, { usage: null }, { usage: 5 }])
      assert.deepEqual(usageOf(json), {})
  })
})

describe('the text of a message', () => {
  it('is what the model wrote, in blocks of every kind', () => {
    const content = [
      { type: 'thinking', thinking: 'a', signature: 'no' },
      { type: 'text', text: 'b' },
      { type: 'tool_use', id: 'no', name: 'c', input: { d: [1, 'é'] } },
      { type: 'tool_use', name: 'e', input: 'no object' },
    ]
    assert.equal(textOf({ content }), 'abc{"d":[1,"é"]}e')
  })

  it('is empty where the answer has another shape', () => {
    for (const json of [undefined, null, [], { content: 'x' }, { content: [null, 1, { text: 5 }] }]) {
      assert.equal(textOf(json), '')
    }
  })

  it('does without an input that is nested too deeply', () => {
    const input = JSON.parse(`{"a":${'['.repeat(300_000)}${']'.repeat(300_000)}}`)
    assert.equal(textOf({ content: [{ type: 'tool_use', name: 'deep', input }, { text: 'b' }] }), 'deepb')
  })
})

describe('a stream of a message', () => {
  it('passes byte for byte, is held back from the stop reason on, and has the cost in its usage', () => {
    const reader = createReader()
    const passed = [START, PING, says('Hel'), ': keep-alive\n\n', says('lo'), frame('content_block_stop', { index: 0 })]
    assert.equal(push(reader, ...passed), passed.join(''))
    assert.equal(push(reader, ends('end_turn', { output_tokens: 4 }), PING, STOP), '')
    assert.equal(reader.state(), 'complete')
    assert.equal(reader.deliveredText(), 'Hello')
    assert.deepEqual(reader.reported(), { input: 12, output: 4, cacheRead: 30, cacheWrite: 5 })
    const cost = { output_tokens: 4, cost_usd: '0.00012' }
    assert.equal(release(reader), ends('end_turn', cost) + PING + STOP)
  })

  it('does not know the output before a message_delta says it', () => {
    const reader = createReader()
    push(reader, START, says('a'))
    assert.deepEqual(reader.reported(), { input: 12, cacheRead: 30, cacheWrite: 5 })
    push(reader, ends(null))
    assert.deepEqual(reader.reported(), { input: 12, cacheRead: 30, cacheWrite: 5 })
    push(reader, ends(null, { output_tokens: 0 }))
    assert.deepEqual(reader.reported(), { input: 12, output: 0, cacheRead: 30, cacheWrite: 5 })
  })

  it('takes what an early message_delta says of the output for so much until then', () => {
    const reader = createReader()
    push(reader, START, ends(null, { output_tokens: 2 }), says('a'))
    assert.deepEqual(reader.reported(), { input: 12, outputSoFar: 2, cacheRead: 30, cacheWrite: 5 })
    push(reader, ends('end_turn', { output_tokens: 4 }), STOP)
    assert.deepEqual(reader.reported(), { input: 12, output: 4, cacheRead: 30, cacheWrite: 5 })
  })

  it('lets each message_delta overwrite what it says, and nothing else', () => {
    const reader = createReader()
    const first = ends(null, { output_tokens: 3, input_tokens: 20, cache_read_input_tokens: null })
    assert.equal(push(reader, START, first), START + first)
    push(reader, ends('tool_use', { output_tokens: 8, input_tokens: -4, cache_creation_input_tokens: 0 }))
    assert.deepEqual(reader.reported(), { input: 20, output: 8, cacheRead: 30, cacheWrite: 0 })
    push(reader, ends('tool_use', { output_tokens: '9' }))
    assert.deepEqual(reader.reported(), { input: 20, output: 8, cacheRead: 30, cacheWrite: 0 })
  })

  it('writes the cost into the last message_delta that is held back', () => {
    const reader = createReader()
    const early = ends(null, { output_tokens: 1 })
    assert.equal(
      push(reader, early, ends('end_turn', { output_tokens: 2 }), ends(null, { output_tokens: 3 }), STOP),
      early,
    )
    const last = ends(null, { output_tokens: 3, cost_usd: '1' })
    assert.equal(release(reader, '1'), ends('end_turn', { output_tokens: 2 }) + last + STOP)
  })

  it('tells the cost beside the stop reason where there is no usage, and in message_stop where there is neither', () => {
    const telling = (text: string) => text.replace(/\}\n\n$/, ',"cost_usd":"0.00012"}\n\n')
    const reader = createReader()
    push(reader, ends('end_turn'), STOP)
    assert.equal(release(reader), telling(ends('end_turn')) + STOP)
    assert.deepEqual(reader.reported(), {})
    const unexplained = createReader()
    push(unexplained, says('a'), STOP)
    assert.equal(release(unexplained), telling(STOP))
  })

  it('tells the cost in message_stop where the frame with the stop reason has no room for it', () => {
    const lines =
      'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},\ndata: "usage":{"output_tokens":4}}\n\n'
    const reader = createReader()
    assert.equal(push(reader, says('a'), lines, STOP), says('a'))
    assert.deepEqual(reader.reported(), { output: 4 })
    assert.equal(release(reader, '1'), lines + STOP.replace(/\}\n\n$/, ',"cost_usd":"1"}\n\n'))
  })

  it('is complete with message_stop, or where the body ends after a stop reason', () => {
    const cut = createReader()
    push(cut, START, says('a'), ends('end_turn', { output_tokens: 1 }))
    assert.equal(cut.state(), 'open')
    cut.finish()
    assert.equal(cut.state(), 'complete')
    const unexplained = createReader()
    assert.equal(push(unexplained, says('a'), STOP), says('a'))
    assert.equal(unexplained.state(), 'complete')
    const broken = createReader()
    push(broken, START, says('a'), ends(null, { output_tokens: 1 }))
    broken.finish()
    assert.equal(broken.state(), 'open')
  })

  it('is not ended by a message_stop of which only the name came', () => {
    const reader = createReader()
    push(reader, says('a'), 'event: message_stop\ndata: {"type":"mess')
    assert.equal(Buffer.concat(reader.finish()).toString(), '')
    assert.equal(reader.state(), 'open')
  })

  it('fails at an error, told by its event or by its data, which the caller gets with what the call cost', () => {
    const end = { cost: '0.5', requestId: 'r' }
    for (const [error, told] of [
      [
        frame('error', { error: { type: 'overloaded_error', message: 'x' }, request_id: 'theirs' }),
        { type: 'error', error: { type: 'overloaded_error', message: 'x', cost_usd: '0.5' }, request_id: 'r' },
      ],
      ['data: {"type":"error","error":{}}\n\n', { type: 'error', error: { cost_usd: '0.5' }, request_id: 'r' }],
    ] as const) {
      const reader = createReader()
      assert.equal(push(reader, says('a'), error), says('a'))
      assert.deepEqual([reader.state(), reader.deliveredText()], ['failed', 'a'])
      const [, data = ''] = /^data: (.*)$/m.exec(reader.endInError(end)?.toString() ?? '') ?? []
      assert.deepEqual(JSON.parse(data), told)
    }
    const unreadable = createReader()
    assert.equal(push(unreadable, 'event: error\ndata: no json\n\n'), 'event: error\ndata: no json\n\n')
    assert.deepEqual([unreadable.state(), unreadable.endInError(end)], ['failed', undefined])
  })

  it('is neither failed nor ended by what the model wrote', () => {
    const words = 'event: error\ndata: {"type":"error"}\n\n"stop_reason":"end_turn" {"type":"message_stop"}'
    const reader = createReader()
    assert.equal(push(reader, says(words)), says(words))
    assert.equal(reader.state(), 'open')
    const nested = frame('content_block_delta', {
      delta: { type: 'error', stop_reason: 'end_turn' },
      error: { type: 'error' },
    })
    assert.equal(push(reader, nested), nested)
    assert.equal(reader.state(), 'open')
  })

  it('counts everything that the model wrote, of every kind', () => {
    const delta = (members: object) => frame('content_block_delta', { index: 0, delta: members })
    const starts = (content_block: object) => frame('content_block_start', { index: 0, content_block })
    const reader = createReader()
    push(
      reader,
      starts({ type: 'thinking', thinking: '', signature: 'no' }),
      delta({ type: 'thinking_delta', thinking: 'a' }),
      delta({ type: 'signature_delta', signature: 'no' }),
      starts({ type: 'text', text: 'b' }),
      delta({ type: 'text_delta', text: 'c' }),
      delta({ type: 'citations_delta', citation: { cited_text: 'no' } }),
      starts({ type: 'tool_use', id: 'no', name: 'd', input: {} }),
      delta({ type: 'input_json_delta', partial_json: '{"e"' }),
      delta({ type: 'text_delta', text: 5 }),
      frame('content_block_delta', { delta: null }),
      frame('content_block_start'),
    )
    assert.equal(reader.deliveredText(), 'abcd{"e"')
  })

  it('counts the input of a tool that comes whole in its start', () => {
    const reader = createReader()
    const content_block = { type: 'tool_use', id: 'no', name: 'd', input: { e: 1 } }
    push(reader, frame('content_block_start', { index: 0, content_block }))
    assert.equal(reader.deliveredText(), 'd{"e":1}')
  })

  it('goes by the name of the event where the data has no type', () => {
    const reader = createReader()
    const bare = 'event: message_delta\ndata: {"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}\n\n'
    assert.equal(push(reader, bare, STOP.replaceAll('\n', '\r\n')), '')
    assert.equal(reader.state(), 'complete')
    assert.deepEqual(reader.reported(), { output: 2 })
  })

  it('passes on what is no JSON, and counts nothing of it', () => {
    const odd =
      'event: message_stop\n\nevent: message_delta\ndata: {\n\nevent: message_stop\ndata: null\n\ndata: []\n\n'
    const reader = createReader()
    assert.equal(push(reader, odd), odd)
    assert.equal(reader.state(), 'open')
  })
})

describe('the calls of tools in a stream', () => {
  const calls = (name: string) => frame('content_block_start', { content_block: { type: 'server_tool_use', name } })
  const brings = (tool: string, content: unknown) =>
    frame('content_block_start', { content_block: { type: `${tool}_tool_result`, content } })
  const heard = (toolCalls: number | undefined, ...frames: readonly string[]) => {
    const reader = createReader(toolCalls === undefined ? {} : { toolCalls })
    push(reader, START, ...frames)
    return reader.reported().calls
  }

  it('are counted before they are reported, so that a stream that breaks off costs them', () => {
    const begun = [calls('web_search'), brings('web_search', []), calls('web_search'), calls('web_fetch')]
    assert.deepEqual(heard(5, ...begun, calls('code_execution')), { web_search: 2, web_fetch: 1 })
    assert.equal(heard(undefined, ...begun), undefined)
  })

  it('are as many as are reported, where those are more', () => {
    const usage = { output_tokens: 1, server_tool_use: { web_search_requests: 3, web_fetch_requests: 0 } }
    assert.deepEqual(heard(5, calls('web_search'), calls('web_fetch'), ends('end_turn', usage)), {
      web_search: 3,
      web_fetch: 1,
    })
  })

  it('are none where they fail', () => {
    const failed = brings('web_search', { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' })
    assert.deepEqual(heard(1, calls('web_search'), brings('web_search', []), calls('web_search'), failed), {
      web_search: 1,
    })
    assert.equal(heard(1, calls('web_search'), failed), undefined)
  })
})
