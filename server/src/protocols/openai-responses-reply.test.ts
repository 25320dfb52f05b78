import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createReader, formOf, restOf, textOf, usageOf } from './openai-responses-reply.ts'
import type { StreamReader } from './protocol.ts'
import { MOST_HELD_BYTES } from './withholding-reader.ts'

const event = (type: string, members: object = {}) =>
  Buffer.from(`event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`)
const USAGE = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 30, cache_write_tokens: 20 },
  output_tokens: 40,
  output_tokens_details: { reasoning_tokens: 15 },
  total_tokens: 140,
}
const REPORTED = { input: 50, output: 40, cacheRead: 30, cacheWrite: 20 }
const message = (text: string) => ({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] })
const call = (name: string, json: string) => ({ type: 'function_call', call_id: 'c', name, arguments: json })
/** Instructions of a length that nobody would take for a few words. */
const LONG = 'Be brief, and say so often. '.repeat(40)
const response = (members: object) => ({
  id: 'resp_1',
  object: 'response',
  instructions: LONG,
  error: null,
  ...members,
})
const delta = (text: string, number = 0) =>
  event('response.output_text.delta', { item_id: 'msg_1', delta: text, obfuscation: 'abc', sequence_number: number })
const begun = [
  event('response.created', { response: response({ status: 'in_progress', output: [], usage: null }) }),
  event('response.in_progress', { response: response({ status: 'in_progress', output: [], usage: null }) }),
]
const completed = (output: readonly unknown[], usage: unknown = USAGE) =>
  event('response.completed', { response: response({ status: 'completed', output, usage }) })

const read = (...frames: readonly Buffer[]): StreamReader => {
  const reader = createReader({})
  for (const frame of frames) reader.push(frame)
  return reader
}

describe('what a response in one piece reports', () => {
  it('is in classes that do not overlap, with reasoning within the output', () => {
    assert.deepEqual(usageOf({ usage: USAGE }), REPORTED)
    assert.deepEqual(usageOf({ usage: USAGE }, { reasoning: 'apart' }), { ...REPORTED, output: 55 })
    assert.deepEqual(usageOf({ usage: { ...USAGE, total_tokens: 155 } }), { ...REPORTED, output: 55 })
    assert.deepEqual(usageOf({ usage: { input_tokens: 0, output_tokens: 0 } }), { input: 0, output: 0 })
    for (const usage of [null, {}, { input_tokens: '5', output_tokens: -1 }]) assert.deepEqual(usageOf({ usage }), {})
  })

  it('has an answer where there is an output, and nothing where there is an error', () => {
    assert.equal(formOf(response({ output: [] })), 'answer')
    assert.equal(formOf(response({ error: { code: 'server_error' }, output: [] })), 'nothing')
    assert.equal(formOf({ choices: [] }), 'unreadable')
  })

  it('has the text of messages, refusals, calls and what is told of the reasoning', () => {
    const output = [
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm. ' }], encrypted_content: 'gAAA' },
      {
        type: 'message',
        content: [
          { type: 'output_text', text: 'Yes. ' },
          { type: 'refusal', refusal: 'No. ' },
        ],
      },
      call('f', '{"a":1}'),
      { type: 'custom_tool_call', name: 'g', input: 'x' },
    ]
    assert.equal(textOf(response({ output, output_text: 'Yes. ' })), 'Hm. Yes. No. f{"a":1}gx')
  })

  it('does not have what it repeats of the request', () => {
    assert.deepEqual(
      restOf({ id: 'a', instructions: LONG, tools: [], metadata: {}, output: [], status: 'completed' }),
      {
        id: 'a',
        output: [],
        status: 'completed',
      },
    )
  })
})

describe('a stream of a response', () => {
  it('holds back its last event alone, and tells the cost in its usage', () => {
    const reader = createReader({})
    const passed = [...begun, delta('Seven.'), event('response.output_item.done', { item: message('Seven.') })]
    for (const frame of passed) assert.deepEqual(reader.push(frame), [frame])
    assert.deepEqual([reader.state(), reader.isHolding()], ['open', false])
    assert.deepEqual(reader.push(completed([message('Seven.')])), [])
    assert.deepEqual([reader.state(), reader.isHolding()], ['complete', true])
    assert.deepEqual(reader.reported(), REPORTED)
    assert.deepEqual([reader.deliveredText(), reader.wholeText()], ['Seven.', 'Seven.'])
    const last = Buffer.concat(reader.release('0.25')).toString()
    const { response: told } = JSON.parse(last.slice(last.indexOf('{')))
    assert.deepEqual(told.usage, { ...USAGE, cost_usd: '0.25' })
    assert.equal(last.replace(',"cost_usd":"0.25"', ''), completed([message('Seven.')]).toString())
  })

  it('tells the cost beside its response where nothing is reported, and counts what was written', () => {
    const reader = read(...begun, delta('Seven.'), completed([message('Seven.')], null))
    assert.deepEqual([reader.state(), reader.reported(), reader.wholeText()], ['complete', {}, 'Seven.'])
    assert.match(Buffer.concat(reader.release('0.25')).toString(), /"cost_usd":"0\.25"\}\n\n$/)
  })

  it('does not take the zeros before an answer for what the answer used', () => {
    const zeros = { input_tokens: 0, output_tokens: 0, total_tokens: 0 }
    const early = ['response.created', 'response.in_progress', 'response.queued'].map((type) =>
      event(type, { response: response({ output: [], usage: zeros }) }),
    )
    assert.deepEqual(read(...early, delta('Seven.')).reported(), {})
    assert.deepEqual(read(...early, delta('Seven.'), completed([message('Seven.')], null)).reported(), {})
    assert.deepEqual(read(...early, delta('Seven.'), completed([message('Seven.')])).reported(), REPORTED)
    assert.deepEqual(read(delta('Seven.'), completed([message('Seven.')], zeros)).reported(), { input: 0, output: 0 })
  })

  it('reads its usage behind as much of the request as is taken, and as long an answer', () => {
    const instructions = 'x'.repeat(2_000_000)
    const text = 'y'.repeat(1_000_000)
    const told = { status: 'completed', instructions, output: [message(text)], usage: USAGE }
    const whole = Buffer.concat([delta('y'), event('response.completed', { response: response(told) })])
    const reader = createReader({})
    // As it comes, and what is kept of a frame meanwhile is told to whoever makes room for it.
    let mostKept = 0
    for (let at = 0; at < whole.length; at += 65_536) {
      reader.push(whole.subarray(at, at + 65_536))
      mostKept = Math.max(mostKept, reader.keptBytes())
    }
    assert.deepEqual([reader.state(), reader.reported()], ['complete', REPORTED])
    assert.ok(mostKept >= 3_000_000, `${mostKept}`)
    const endless = createReader({})
    assert.throws(() => endless.push(Buffer.alloc(MOST_HELD_BYTES + 1, 'x')), RangeError)
  })

  it('has ended where its limit cut the answer, and has failed where it says so', () => {
    const cut = event('response.incomplete', { response: response({ output: [message('Se')], usage: USAGE }) })
    assert.equal(read(delta('Se'), cut).state(), 'complete')
    const failed = event('response.failed', { response: response({ error: { code: 'server_error' }, usage: USAGE }) })
    for (const error of [
      failed,
      event('error', { code: 'x', message: 'y' }),
      event('x', { error: { message: 'y' } }),
    ]) {
      const reader = read(delta('Se'), error)
      assert.deepEqual([reader.state(), reader.deliveredText()], ['failed', 'Se'])
      const told = reader.endInError({ cost: '0.5', requestId: 'r' })?.toString() ?? ''
      assert.match(told, /^event: .*\ndata: .*"cost_usd":"0\.5".*"request_id":"r"\}\n\n$/)
    }
    assert.deepEqual(read(failed).reported(), REPORTED)
  })

  it('has not ended where it says nothing but that it is done', () => {
    const reader = createReader({})
    reader.push(delta('Seven.'))
    assert.deepEqual(reader.push(Buffer.from('data: [DONE]\n\n')), [])
    reader.finish()
    assert.equal(reader.state(), 'open')
  })

  it('has not ended where its last event breaks off', () => {
    const reader = createReader({})
    const last = completed([message('Seven.')])
    reader.push(delta('Seven.'))
    reader.push(last.subarray(0, -40))
    assert.deepEqual([reader.finish(), reader.state(), reader.isHolding()], [[], 'open', false])
  })

  it('counts what was written once, however often it is told', () => {
    const json = '{"city":"Oslo"}'
    const reader = read(
      ...begun,
      event('response.output_item.added', { item: message('') }),
      event('response.content_part.added', { part: { type: 'output_text', text: '' } }),
      ...[...'Größe 東京 '].map((one, number) => delta(one, number)),
      event('response.output_text.done', { text: 'Größe 東京 ' }),
      event('response.content_part.done', { part: { type: 'output_text', text: 'Größe 東京 ' } }),
      event('response.output_item.done', { item: message('Größe 東京 ') }),
      event('response.output_item.added', { item: call('weather', '') }),
      event('response.function_call_arguments.delta', { delta: json }),
      event('response.function_call_arguments.done', { arguments: json }),
      event('response.output_item.done', { item: call('weather', json) }),
      completed([message('Größe 東京 '), call('weather', json)]),
    )
    assert.equal(reader.wholeText(), `Größe 東京 weather${json}`)
    assert.equal(reader.textBytes(), Buffer.byteLength(`Größe 東京 weather${json}`))
  })

  it('counts what is told at one place alone, wherever that is', () => {
    const only: readonly Buffer[] = [
      event('response.output_text.done', { text: 'Seven.' }),
      event('response.content_part.done', { part: { type: 'output_text', text: 'Seven.' } }),
      event('response.output_item.done', { item: message('Seven.') }),
      completed([message('Seven.')]),
    ]
    for (let from = 0; from < only.length; from += 1) assert.equal(read(...only.slice(from)).wholeText(), 'Seven.')
    // The beginning came in a delta, and the rest did not.
    assert.equal(read(delta('Se'), ...only).wholeText(), 'Seven.')
    // The other item did, and this one did not.
    const both = read(delta('One.'), event('response.output_item.done', { item: message('One.') }), ...only.slice(2))
    assert.equal(both.wholeText(), 'One.Seven.')
  })

  it('takes words for text that stand where nobody expects them, but not what it repeats of the request', () => {
    assert.equal(read(...begun, ...begun, ...begun).textBytes(), 0)
    const strange = event('response.of_tomorrow', { item_id: 'a', words: LONG })
    assert.equal(read(...begun, strange).wholeText(), LONG)
    const hidden = completed([{ type: 'of_tomorrow', words: LONG }], null)
    assert.equal(read(...begun, hidden).wholeText(), LONG)
    const many = Array.from({ length: 100 }, () =>
      event('response.output_item.added', { item: { ...message(''), status: 'x' } }),
    )
    assert.equal(read(...many).textBytes(), 0)
  })
})
