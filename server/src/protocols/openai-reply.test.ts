import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createReader, hasMedia, textOf } from './openai-reply.ts'
import type { StreamReader } from './protocol.ts'

const BASE = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
const DONE = 'data: [DONE]\n\n'
const USAGE = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }

function frame(members: object): string {
  return `data: ${JSON.stringify({ ...BASE, ...members })}\n\n`
}

function says(content: string, index = 0): string {
  return frame({ choices: [{ index, delta: { content }, finish_reason: null }], usage: null })
}

function stops(index = 0, delta: object = {}): string {
  return frame({ choices: [{ index, delta, finish_reason: 'stop' }], usage: null })
}

function usageChunk(usage: object): string {
  return frame({ choices: [], usage })
}

function push(reader: StreamReader, ...frames: readonly string[]): string {
  return Buffer.concat(reader.push(Buffer.from(frames.join('')))).toString()
}

function release(reader: StreamReader, cost = '0.00012'): string {
  return Buffer.concat(reader.release(cost)).toString()
}

/** A chunk that tells the cost beside its other members. */
function telling(chunk: string, cost = '0.00012'): string {
  return chunk.replace(/\}\n\n$/, `,"cost_usd":"${cost}"}\n\n`)
}

const bare = (text: string) => text.replace(',"usage":null', '')

const wanting = (choices = 1) => createReader({ choices, wantsUsage: true })
const plain = (choices = 1) => createReader({ choices, wantsUsage: false })

const END = { cost: '0.5', requestId: 'r' }

describe('the text of a chat completion', () => {
  it('is what the model wrote, of all choices', () => {
    const message = {
      role: 'assistant',
      content: 'a',
      refusal: 'b',
      reasoning_content: 'c',
      reasoning: 'c',
      tool_calls: [{ id: 'no', function: { name: 'd', arguments: '{"e":1}' } }],
      function_call: { name: 'f', arguments: 'g' },
    }
    const json = { choices: [{ message }, { message: { content: null, reasoning: 'h' } }] }
    assert.equal(textOf(json), 'abcd{"e":1}fgh')
  })

  it('has calls of custom tools, and reasoning once, under whichever name it stands', () => {
    const textOfMessage = (message: object) => textOf({ choices: [{ message }] })
    assert.equal(
      textOfMessage({ tool_calls: [{ type: 'custom', custom: { name: 'run', input: 'ls -l' } }] }),
      'runls -l',
    )
    const details = [{ text: 'a' }, { summary: 'b' }, { type: 'reasoning.encrypted', data: 'no' }]
    assert.equal(textOfMessage({ reasoning_content: '', reasoning: 'r', reasoning_details: details }), 'r')
    assert.equal(textOfMessage({ reasoning_content: null, reasoning_details: details }), 'ab')
    const reader = wanting()
    const delta = { tool_calls: [{ index: 0, custom: { input: 'ls' } }], reasoning_content: '', reasoning: 'r' }
    push(reader, frame({ choices: [{ index: 0, delta }] }))
    assert.equal(reader.deliveredText(), 'rls')
  })

  it('is empty where the answer has another shape', () => {
    for (const json of [undefined, null, [], { choices: {} }, { choices: [null, 1, { message: [] }] }]) {
      assert.equal(textOf(json), '')
    }
    assert.equal(textOf({ choices: [{ message: { content: 1, tool_calls: {}, function_call: 'x' } }] }), '')
  })
})

describe('a stream of chat completions', () => {
  it('has reasoning outside of the completion where the profile says that it is apart', () => {
    const reader = createReader({ choices: 1, wantsUsage: true }, { reasoning: 'apart' })
    const details = { completion_tokens_details: { reasoning_tokens: 50 } }
    push(reader, says('a'), stops(), usageChunk({ ...USAGE, ...details }), DONE)
    assert.deepEqual(reader.reported(), { input: 7, output: 53 })
  })

  it('passes byte for byte where the caller wants the usage, and has the cost in it', () => {
    const reader = wanting()
    assert.equal(
      push(reader, says('Hel'), ': keep-alive\n\n', says('lo')),
      `${says('Hel')}: keep-alive\n\n${says('lo')}`,
    )
    assert.equal(push(reader, stops(), usageChunk(USAGE), DONE), '')
    assert.equal(reader.state(), 'complete')
    assert.deepEqual(reader.reported(), { input: 7, output: 3 })
    assert.equal(reader.deliveredText(), 'Hello')
    assert.equal(release(reader), stops() + usageChunk({ ...USAGE, cost_usd: '0.00012' }) + DONE)
  })

  it('passes as if nobody had asked for the usage where the caller has not, and has the cost in the chunk that stops', () => {
    const reader = plain()
    assert.equal(push(reader, says('Hello')), bare(says('Hello')))
    assert.equal(push(reader, stops(), usageChunk(USAGE), DONE), '')
    assert.deepEqual(reader.reported(), { input: 7, output: 3 })
    assert.equal(release(reader), telling(bare(stops())) + DONE)
  })

  it('tells the cost where the last of several choices stops, and in no other chunk', () => {
    const reader = plain(2)
    const calls = frame({ choices: [{ index: 1, delta: {}, finish_reason: 'tool_calls' }] })
    assert.equal(
      push(reader, says('a'), stops(0), says('b', 1)),
      [says('a'), stops(0), says('b', 1)].map(bare).join(''),
    )
    assert.equal(push(reader, calls, usageChunk(USAGE), DONE), '')
    assert.equal(release(reader), telling(calls) + DONE)
  })

  it('tells the cost where it stops also when the usage does not come, whoever wants it', () => {
    for (const [reader, stop] of [
      [plain(), bare(stops())],
      [wanting(), stops()],
    ] as const) {
      assert.equal(push(reader, stops()), '')
      reader.finish()
      assert.deepEqual([reader.state(), release(reader)], ['complete', telling(stop)])
    }
  })

  it('tells the cost beside a usage that has no room for it', () => {
    const reader = wanting()
    push(reader, stops(), usageChunk({}), DONE)
    assert.equal(release(reader), stops() + telling(usageChunk({})) + DONE)
  })

  it('tells no cost where no chunk that is held back has room, and adds no chunk for it', () => {
    const lines = 'data: {"choices":[{"delta":{},\ndata: "finish_reason":"stop"}]}\n\n'
    for (const [held, passed] of [
      [lines + DONE, ''],
      [DONE, says('a')],
    ] as const) {
      const reader = plain()
      assert.equal(push(reader, passed, held), bare(passed))
      assert.equal(release(reader), held)
    }
    const fewer = plain(2)
    assert.equal(push(fewer, stops(), usageChunk(USAGE), DONE), bare(stops()))
    assert.equal(release(fewer), DONE)
  })

  it('keeps a chunk with choices whole where the usage is in it, whoever wants it', () => {
    const both = frame({ choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'stop' }], usage: USAGE })
    const reader = plain()
    assert.equal(push(reader, both, DONE), '')
    assert.equal(release(reader), telling(both) + DONE)
    assert.equal(reader.deliveredText(), 'a')
  })

  it('leaves alone what the model wrote about usage', () => {
    const words = ',"usage":null} "finish_reason":"stop" {"error":{"message":"x"}} data: [DONE]\n\n'
    const chunk = { choices: [{ index: 0, delta: { content: words }, finish_reason: null }] }
    const reader = plain()
    assert.equal(push(reader, frame(chunk), frame({ ...chunk, usage: null })), frame(chunk) + frame(chunk))
    assert.equal(reader.state(), 'open')
    assert.equal(reader.deliveredText(), words + words)
  })

  it('passes on a chunk without choices that is not the usage, such as one of a filter', () => {
    const filter = frame({ choices: [], prompt_filter_results: [] })
    assert.equal(push(plain(), filter), filter)
  })

  it('is not at its end with a usage that comes first: what is written after it is passed on at once', () => {
    for (const [reader, passed] of [
      [wanting(), usageChunk(USAGE) + says('a') + says('b')],
      [plain(), bare(says('a')) + bare(says('b'))],
    ] as const) {
      assert.equal(push(reader, usageChunk(USAGE), says('a'), says('b')), passed)
      assert.equal(reader.isHolding(), false)
      assert.equal(push(reader, stops(), usageChunk(USAGE), DONE), '')
      assert.equal(reader.state(), 'complete')
      assert.equal(release(reader).split('"cost_usd"').length - 1, 1)
    }
    // An upstream that gives no reasons has said everything with the usage that comes after its text.
    const unstopped = wanting()
    assert.equal(push(unstopped, usageChunk(USAGE), says('a'), usageChunk(USAGE)), usageChunk(USAGE) + says('a'))
    assert.equal(unstopped.isHolding(), true)
  })

  it('is not at its end before every choice has stopped, however often one of them does', () => {
    const reader = wanting(3)
    const early = [says('a'), says('b', 2), stops(1), stops(1), says('c', 1), stops(1), stops(0), says('d', 0)]
    assert.equal(push(reader, ...early), early.join(''))
    assert.equal(push(reader, stops(2, { content: 'e' }), says('f', 0)), '')
    assert.equal(reader.deliveredText(), 'abcd')
    reader.finish()
    assert.equal(reader.state(), 'complete')
    assert.equal(release(reader), telling(stops(2, { content: 'e' })) + says('f', 0))
    assert.equal(reader.deliveredText(), 'abcdef')
  })

  it('counts the choices that stop in one chunk', () => {
    const both = frame({ choices: [0, 1].map((index) => ({ index, delta: {}, finish_reason: 'length' })) })
    const reader = wanting(2)
    assert.equal(push(reader, says('a'), both), says('a'))
  })

  it('takes an empty stop reason for none, and a missing index for the only one', () => {
    const empty = frame({ choices: [{ index: 0, delta: { content: 'a' }, finish_reason: '' }] })
    const reader = wanting()
    assert.equal(push(reader, empty), empty)
    assert.equal(push(reader, frame({ choices: [{ delta: {}, finish_reason: 'stop' }] })), '')
  })

  it('is complete with a stop and then [DONE] or the end of the body, or with [DONE] alone', () => {
    const stopped = wanting()
    push(stopped, says('a'), stops(), usageChunk(USAGE))
    assert.equal(stopped.state(), 'open')
    stopped.finish()
    assert.equal(stopped.state(), 'complete')
    const unstopped = wanting(2)
    assert.equal(push(unstopped, says('a'), stops(), usageChunk(USAGE), DONE), says('a') + stops())
    assert.equal(unstopped.state(), 'complete')
    assert.equal(unstopped.deliveredText(), 'a')
    const silent = wanting()
    push(silent, says('a'))
    silent.finish()
    assert.equal(silent.state(), 'open')
  })

  it('has the text of what it holds back beside what was delivered', () => {
    const reader = wanting()
    push(reader, says('a'), stops(0, { content: 'b' }))
    assert.deepEqual([reader.deliveredText(), reader.wholeText()], ['a', 'ab'])
  })

  it('does not tell an error in the words of its upstream that comes after the end of an answer', () => {
    const held = wanting()
    push(held, stops(), 'data: {"error":{"message":"overloaded"}}\n\n')
    assert.deepEqual([held.state(), held.endInError(END)], ['failed', undefined])
  })

  it('takes for [DONE] whatever the libraries of callers take for it', () => {
    const reader = wanting()
    assert.equal(push(reader, stops(), 'data: [DONE] \n\n'), '')
    assert.equal(reader.state(), 'complete')
    const unspaced = wanting()
    assert.equal(push(unspaced, stops(), 'data:[DONE]'), '')
    unspaced.finish()
    assert.equal(release(unspaced), `${telling(stops())}data:[DONE]\n\n`)
  })

  it('fails at an error of the upstream, which the caller gets with what the call cost, and nothing behind it', () => {
    const error = 'data: {"error":{"message":"overloaded","type":"server_error"}}\n\n'
    const reader = plain()
    assert.equal(push(reader, says('a'), error, says('b'), DONE), says('a').replace(',"usage":null', ''))
    assert.deepEqual([reader.state(), reader.deliveredText()], ['failed', 'a'])
    assert.equal(
      reader.endInError(END)?.toString(),
      'data: {"error":{"message":"overloaded","type":"server_error","cost_usd":"0.5"},"request_id":"r"}\n\n',
    )
  })

  it('fails at an error that comes with a stop reason', () => {
    const reader = wanting()
    push(reader, frame({ error: { code: 502 }, choices: [{ index: 0, delta: {}, finish_reason: 'error' }] }))
    assert.equal(reader.state(), 'failed')
    assert.match(reader.endInError(END)?.toString() ?? '', /"error":\{"code":502,"cost_usd":"0.5"\}/)
  })

  it('is not failed by an error that is null, nor by one inside of something', () => {
    const reader = wanting()
    push(reader, frame({ error: null, choices: [] }), frame({ choices: [{ error: { message: 'x' } }] }))
    assert.equal(reader.state(), 'open')
  })

  it('passes on what is no JSON, and counts nothing of it', () => {
    const odd = 'data: {"choices":\n\ndata: null\n\ndata: [1]\n\ndata\n\nevent: x\n\n: comment\r\n\r\n\n\n'
    const reader = plain()
    assert.equal(push(reader, odd), odd)
    assert.equal(reader.deliveredText(), '')
    assert.equal(reader.state(), 'open')
  })

  it('counts everything that the model wrote, of every kind', () => {
    const delta = (members: object) => frame({ choices: [{ index: 0, delta: members, finish_reason: null }] })
    const reader = wanting()
    push(
      reader,
      delta({ role: 'assistant', content: 'a', refusal: null }),
      delta({ refusal: 'b' }),
      delta({ reasoning: 'c' }),
      delta({ reasoning_content: 'd', reasoning: 'd' }),
      delta({ tool_calls: [{ index: 0, id: 'call', function: { name: 'e', arguments: '' } }] }),
      delta({ tool_calls: [{ index: 0, function: { arguments: '{"f"' } }] }),
      delta({ function_call: { name: 'g', arguments: 'h' } }),
      delta({ content: 5, tool_calls: 'x', function_call: [] }),
      frame({ choices: [null, 'x', 5, { delta: null }, {}] }),
    )
    assert.equal(reader.deliveredText(), 'abcde{"f"gh')
  })

  it('takes the last usage that says something, also where it comes with a choice', () => {
    const reader = wanting()
    const usage = { prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 4 } }
    push(reader, frame({ choices: [{ index: 0, delta: { content: 'a' } }], usage }))
    assert.deepEqual(reader.reported(), { input: 5, output: 1, cacheRead: 4 })
    const end = (cost: object) =>
      frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: { completion_tokens: 2, ...cost } })
    push(reader, end({}), says(''), DONE)
    assert.deepEqual(reader.reported(), { input: 5, output: 2, cacheRead: 4 })
    assert.ok(release(reader, '0.5').startsWith(end({ cost_usd: '0.5' })))
  })

  it('reports nothing where nothing was said', () => {
    const reader = wanting()
    push(reader, says('a'), stops(), usageChunk({ prompt_tokens: -1, completion_tokens: 1e15, x: 'NaN' }), DONE)
    assert.deepEqual(reader.reported(), {})
    assert.equal(reader.state(), 'complete')
  })

  it('has our cost last where the upstream wrote one too', () => {
    const reader = wanting()
    push(reader, stops(), usageChunk({ ...USAGE, cost_usd: '99' }), DONE)
    const [, usage] = release(reader, '0.5').split('\n\n')
    assert.equal(JSON.parse(usage?.slice('data: '.length) ?? '').usage.cost_usd, '0.5')
    const beside = plain()
    push(beside, frame({ cost_usd: '99', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }), DONE)
    const [stop] = release(beside, '0.5').split('\n\n')
    assert.equal(JSON.parse(stop?.slice('data: '.length) ?? '').cost_usd, '0.5')
  })

  it('has no cost of the upstream in an error that passes in its own words', () => {
    for (const [error, told] of [
      [{ error: { message: 'x', cost_usd: '99' } }, { error: { message: 'x', cost_usd: '0.5' } }],
      [
        { cost_usd: '99', error: { message: 'cost_usd' }, choices: [] },
        { error: { message: 'cost_usd', cost_usd: '0.5' }, choices: [] },
      ],
      [
        { error: { details: [{ metadata: { cost_usd: 1, a: 2 } }] } },
        { error: { details: [{ metadata: { a: 2 } }], cost_usd: '0.5' } },
      ],
      [{ error: 'overloaded' }, { error: 'overloaded', cost_usd: '0.5' }],
    ] as const) {
      const reader = wanting()
      assert.equal(push(reader, `data: ${JSON.stringify(error)}\n\n`), '')
      const data = JSON.stringify({ ...told, request_id: 'r' })
      assert.equal(reader.endInError(END)?.toString(), `data: ${data}\n\n`)
    }
    const named = wanting()
    push(named, 'event: error\ndata: {"error":\ndata: {"cost_usd":1}}\n\n')
    assert.match(named.endInError(END)?.toString() ?? '', /^event: error\ndata: \{"error":\{"cost_usd":"0\.5"\}/)
  })

  it('passes carriage returns and a byte order mark as they came', () => {
    const crlf = (text: string) => text.replaceAll('\n', '\r\n')
    const reader = wanting()
    assert.equal(push(reader, '\uFEFF', crlf(says('a'))), `\uFEFF${crlf(says('a'))}`)
    assert.equal(push(reader, crlf(stops()), crlf(usageChunk(USAGE)), crlf(DONE)), '')
    const cost = usageChunk({ ...USAGE, cost_usd: '1' })
    assert.equal(release(reader, '1'), crlf(stops() + cost + DONE))
    assert.equal(reader.deliveredText(), 'a')
  })
})

it('tells an answer that is spoken from one that is not', () => {
  const answer = (message: object) => ({ choices: [{ message: { content: 'a' } }, { message }] })
  assert.equal(hasMedia(answer({ audio: { id: 'a', data: 'AAAA' } })), true)
  for (const json of [answer({ content: 'a', audio: null }), { choices: [] }, null]) assert.equal(hasMedia(json), false)
})

describe('a report that comes before the end of what is generated', () => {
  const early = usageChunk({ prompt_tokens: 10, completion_tokens: 0 })

  it('says no more than how much there was until then', () => {
    const reader = wanting()
    push(reader, early)
    assert.deepEqual(reader.reported(), { input: 10, output: 0 })
    push(reader, says('a'))
    assert.deepEqual(reader.reported(), { input: 10, outputSoFar: 0 })
    push(reader, usageChunk({ prompt_tokens: 10, completion_tokens: 5 }))
    assert.deepEqual(reader.reported(), { input: 10, output: 5 })
  })

  it('also where frames are alike, of which one was read', () => {
    const reader = plain()
    const words = [...'abcdefgh'].map((word) => says(word))
    push(reader, ...words, frame({ choices: [{ index: 0, delta: {} }], usage: { completion_tokens: 8 } }))
    assert.equal(reader.reported().output, 8)
    for (const word of words) push(reader, word)
    assert.deepEqual(reader.reported(), { outputSoFar: 8 })
  })

  it('and says all of it where it stands in the last frame that has any', () => {
    const reader = wanting()
    push(reader, early, says('a'), frame({ choices: [{ index: 0, delta: { content: 'b' } }], usage: USAGE }))
    push(reader, stops(), DONE)
    assert.deepEqual([reader.state(), reader.reported()], ['complete', { input: 7, output: 3 }])
  })
})

describe('sound in a stream', () => {
  const hears = (length: number, transcript?: string) =>
    frame({ choices: [{ index: 0, delta: { audio: { data: 'A'.repeat(length), transcript } }, finish_reason: null }] })
  const needs = new Set(['output_audio'] as const)

  it('is counted by its length where it was asked for, and is no text', () => {
    const reader = createReader({ choices: 1, wantsUsage: true, needs })
    for (const one of [hears(25_600), hears(12_800, 'Hello'), hears(12_801)]) push(reader, one)
    assert.deepEqual([reader.reported(), reader.deliveredText()], [{ soundTokens: 21 }, 'Hello'])
  })

  it('is text of which nobody knows where it was not', () => {
    const reader = plain()
    push(reader, hears(1_000))
    assert.deepEqual([reader.reported(), reader.deliveredText()], [{}, 'A'.repeat(1_000)])
  })
})
