import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { count, seed } from '../../../harness/proof.ts'
import { createReader as createAnthropicReader } from './anthropic-reply.ts'
import { createReader as createGeminiReader } from './gemini-reply.ts'
import { MOST_TEXT_BYTES } from './kept-text.ts'
import { createReader as createOpenaiReader } from './openai-reply.ts'
import { createReader as createResponsesReader } from './openai-responses-reply.ts'
import type { StreamReader } from './protocol.ts'
import { createWithholdingReader, MOST_HELD_BYTES, type Reading } from './withholding-reader.ts'

const NO_USAGE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
const CASES = count({ full: 20_000, reduced: 1_000 })

/** Of a protocol in which every frame says what it is. */
function createPlainReader(): StreamReader {
  return createWithholdingReader({
    read: (_, json) => (json ?? {}) as Reading,
    reported: () => ({}),
    ending: { passed: () => {}, frames: ({ endedBy }) => `: ${endedBy}\n\n` },
  })
}

function say(reading: Reading): string {
  return `data: ${JSON.stringify(reading)}\n\n`
}

/** Everything that can be seen of a reader whose stream comes in these pieces. */
function outcome(reader: StreamReader, pieces: readonly Buffer[]) {
  const passed = pieces.flatMap((piece) => reader.push(piece))
  const beforeEnd = { passed: Buffer.concat(passed).toString(), state: reader.state(), text: reader.deliveredText() }
  const last = Buffer.concat(reader.finish()).toString()
  const seen = { beforeEnd, last, state: reader.state(), reported: reader.reported(), text: reader.deliveredText() }
  return { ...seen, released: Buffer.concat(reader.release('0.25')).toString(), all: reader.deliveredText() }
}

function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((one, other) => one - other)
  return places.map((end, at) => bytes.subarray(places[at - 1] ?? 0, end))
}

function text(buffers: readonly Buffer[]): string {
  return Buffer.concat(buffers).toString()
}

const finishes = (index: number) => `{"choices":[{"index":${index},"delta":{},"finish_reason":"stop"}],"usage":null}`
const openaiData = fc.constantFrom(
  '{"choices":[{"index":0,"delta":{"content":"ä€"},"finish_reason":null}],"usage":null}',
  '{"choices":[{"index":1,"delta":{"content":"\\"finish_reason\\":\\"stop\\",\\"usage\\":null"}}],"usage":null}',
  ...[finishes(0), finishes(1), '[DONE]', 'no json', '{"error":null}', '{"error":{"message":"x"}}', '[]', 'null'],
  '{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}',
)
const anthropicData = fc.constantFrom(
  '{"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}',
  '{"type":"content_block_delta","delta":{"type":"text_delta","text":"ä€"}}',
  '{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":4}}',
  '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}',
  ...['{"type":"message_stop"}', '{"type":"ping"}', '{"type":"error","error":{}}', 'no json'],
)
const responsesData = fc.constantFrom(
  '{"type":"response.created","response":{"instructions":"Be brief.","output":[],"usage":null}}',
  '{"type":"response.output_item.added","item":{"type":"function_call","name":"f","arguments":""}}',
  '{"type":"response.output_text.delta","delta":"ä€","sequence_number":4}',
  '{"type":"response.output_text.done","text":"ä€ä€","sequence_number":5}',
  '{"type":"response.output_item.done","item":{"content":[{"type":"output_text","text":"ä€ and more"}]}}',
  '{"type":"response.completed","response":{"output":[],"usage":{"input_tokens":7,"output_tokens":3}}}',
  ...['{"type":"response.failed","response":{"error":{}}}', '{"type":"error","error":{}}', '[DONE]', 'no json', 'null'],
)
const END_OF_LINE = fc.constantFrom('\n', '\r\n', '\r')

function streamOf(data: fc.Arbitrary<string>): fc.Arbitrary<Buffer> {
  const frame = fc.oneof(
    { weight: 8, arbitrary: data.map((json) => `data: ${json}§§`) },
    fc.constantFrom(': keep-alive§§', '§', 'event: error§data: {}§§', 'data: {"choices":§data: []}§§', 'data: {"cho'),
  )
  return fc
    .tuple(fc.constantFrom('', '\uFEFF'), fc.array(frame, { maxLength: 12 }), END_OF_LINE)
    .map(([bom, frames, end]) => Buffer.from(bom + frames.join('').replaceAll('§', end)))
}

const makers: [string, fc.Arbitrary<Buffer>, () => StreamReader][] = [
  ['a chat with usage', streamOf(openaiData), () => createOpenaiReader({ choices: 2, wantsUsage: true })],
  ['a chat without usage', streamOf(openaiData), () => createOpenaiReader({ choices: 1, wantsUsage: false })],
  ['responses', streamOf(responsesData), () => createResponsesReader({})],
  ['messages', streamOf(anthropicData), createAnthropicReader],
]

describe('a reader of streams', () => {
  it('knows how many bytes of text there were, also beyond what it keeps to be counted', () => {
    const reader = createPlainReader()
    const long = 'é'.repeat(300_000)
    for (const part of ['abc', long, long, long]) reader.push(Buffer.from(say({ text: part, isPlain: true })))
    assert.equal(reader.textBytes(), 3 + 3 * 600_000)
    assert.ok(Buffer.byteLength(reader.wholeText()) <= MOST_TEXT_BYTES)
  })

  it('takes for text what stands in frames that have none, once it is more than a few words', () => {
    const strange = 'words that stand where nobody looks for them, '
    for (const [title, reader, frames] of [
      ['old completions', createOpenaiReader({ choices: 1, wantsUsage: true }), { choices: [{ text: strange }] }],
      ['an unknown delta', createAnthropicReader(), { type: 'content_block_delta', delta: { type: 'x', x: strange } }],
      ['an unknown event', createAnthropicReader(), { type: 'x', x: [{ y: strange }] }],
      ['unknown parts', createGeminiReader({ choices: 1 }), { candidates: [{ content: [strange] }] }],
    ] as const) {
      const piece = Buffer.from(`data: ${JSON.stringify(frames)}\n\n`)
      for (let at = 0; at < 5; at += 1) reader.push(piece)
      assert.equal(reader.textBytes(), 0, title)
      for (let at = 0; at < 5; at += 1) reader.push(piece)
      assert.deepEqual([reader.textBytes(), reader.deliveredText()], [10 * strange.length, strange.repeat(10)], title)
    }
    for (const line of [`data: ${strange}\n\n`, `${strange}\n\n`]) {
      const reader = createOpenaiReader({ choices: 1, wantsUsage: true })
      for (let at = 0; at < 10; at += 1) reader.push(Buffer.from(line))
      assert.ok(reader.textBytes() > 400, line)
    }
  })

  it('takes nothing for text in what honest streams have besides it, however often', () => {
    const long = 'x'.repeat(300)
    const base = { id: long, object: 'chat.completion.chunk', model: long, system_fingerprint: long }
    const filter = { content_filter_results: { hate: { severity: long } } }
    for (const [reader, frames] of [
      [
        createOpenaiReader({ choices: 1, wantsUsage: true }),
        [
          { ...base, choices: [{ index: 0, delta: { role: 'assistant', content: '' }, ...filter }], usage: null },
          {
            ...base,
            choices: [{ index: 0, delta: { reasoning_details: [{ type: 'reasoning.encrypted', data: long }] } }],
          },
          { ...base, choices: [], usage: { prompt_tokens: 1 } },
        ],
      ],
      [
        createAnthropicReader(),
        [
          {
            type: 'message_start',
            message: { id: long, type: 'message', role: 'assistant', model: long, content: [] },
          },
          { type: 'ping' },
          { type: 'content_block_start', content_block: { type: 'redacted_thinking', data: long } },
          { type: 'content_block_delta', delta: { type: 'signature_delta', signature: long } },
          { type: 'content_block_stop', index: 0 },
        ],
      ],
      [
        createGeminiReader({ choices: 1 }),
        [
          {
            candidates: [{ content: { role: 'model', parts: [{ text: '', thoughtSignature: long }] } }],
            responseId: long,
          },
        ],
      ],
    ] as const) {
      const piece = frames.map((json) => `data: ${JSON.stringify(json)}\n\n`).join('')
      const pings = `: ${long}\n\nevent: ${long}\n\nevent: ping\nid: ${long}\nretry: 5\n\n`
      for (let at = 0; at < 20; at += 1) reader.push(Buffer.from(piece + pings))
      assert.deepEqual([reader.textBytes(), reader.deliveredText()], [0, ''], piece)
    }
  })

  for (const [title, stream, create] of makers) {
    it(`gives and says the same of ${title}, however the stream is cut`, () => {
      fc.assert(
        fc.property(stream, fc.array(fc.nat(2_000), { maxLength: 12 }), (bytes, cuts) => {
          const whole = outcome(create(), [bytes])
          assert.deepEqual(outcome(create(), cutAt(bytes, cuts)), whole)
          const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
          assert.deepEqual(outcome(create(), single), whole)
        }),
        { numRuns: CASES, seed },
      )
    })
  }

  for (const [title, stream, create] of makers) {
    it(`passes no more of ${title} than may pass, and the same in the end, however it is allowed`, () => {
      const steps = fc.array(fc.nat(20), { maxLength: 30 })
      fc.assert(
        fc.property(stream, fc.array(fc.nat(2_000), { maxLength: 12 }), steps, (bytes, cuts, more) => {
          const whole = outcome(create(), [bytes])
          const reader = create()
          const passed: Buffer[] = []
          let allowed = 0
          const allow = (textBytes: number) => {
            allowed = textBytes
            passed.push(...reader.allow(textBytes))
            assert.ok(reader.textBytes() <= allowed, `${reader.textBytes()} of ${allowed}`)
          }
          allow(0)
          for (const [at, piece] of cutAt(bytes, cuts).entries()) {
            passed.push(...reader.push(piece))
            assert.ok(reader.textBytes() <= allowed, `${reader.textBytes()} of ${allowed}`)
            allow(allowed + (more[at] ?? 0))
          }
          passed.push(...reader.finish())
          for (const step of more) allow(allowed + step)
          allow(Number.POSITIVE_INFINITY)
          assert.equal(reader.isWaiting(), false)
          assert.equal(text(passed), whole.beforeEnd.passed + whole.last)
          assert.deepEqual(
            [reader.state(), reader.reported(), reader.deliveredText()],
            [whole.state, whole.reported, whole.text],
          )
          assert.equal(text(reader.release('0.25')), whole.released)
        }),
        { numRuns: CASES, seed },
      )
    })
  }

  it('says of a frame that waits neither its text nor what it reports', () => {
    const reader = createGeminiReader({ choices: 1 })
    const chunk = (words: string, tokens: number) =>
      `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: words }] } }], usageMetadata: { promptTokenCount: 3, candidatesTokenCount: tokens } })}\n\n`
    reader.allow(4)
    assert.equal(text(reader.push(Buffer.from(chunk('four', 1) + chunk('more', 2)))), chunk('four', 1))
    assert.deepEqual([reader.isWaiting(), reader.deliveredText(), reader.wholeText()], [true, 'four', 'four'])
    assert.equal(reader.reported().output, 1)
    assert.ok(reader.keptBytes() >= chunk('more', 2).length)
    assert.equal(text(reader.allow(8)), chunk('more', 2))
    assert.deepEqual([reader.isWaiting(), reader.reported().output], [false, 2])
  })

  it('gives nothing any more once it has ended at its limit', () => {
    const reader = createPlainReader()
    reader.allow(2)
    assert.equal(text(reader.push(Buffer.from(say({ text: 'ab' }) + say({ text: 'c' })))), say({ text: 'ab' }))
    assert.equal(text(reader.endAtLimit({ cost: '1', endedBy: 'balance', usage: NO_USAGE })), ': balance\n\n')
    assert.deepEqual([reader.push(Buffer.from(say({ text: 'd' }))), reader.finish(), reader.allow(9)], [[], [], []])
    assert.equal(reader.deliveredText(), 'ab')
  })

  it('gives one view of a piece in which nothing is changed', () => {
    const piece = Buffer.from(say({ text: 'a' }) + say({ text: 'b' }) + say({ text: 'c' }))
    const [given, ...others] = createPlainReader().push(piece)
    assert.equal(given?.buffer, piece.buffer)
    assert.deepEqual(given, piece)
    assert.deepEqual(others, [])
  })

  it('holds back from the frame on that ends the answer, and counts its text as delivered when it is released', () => {
    const reader = createPlainReader()
    const end = `${say({ text: 'c', isStop: true })}: keep-alive\n\n${say({ text: 'd' })}${say({ isEnd: true })}`
    assert.equal(text(reader.push(Buffer.from(say({ text: 'ab' }) + end))), say({ text: 'ab' }))
    assert.equal(reader.state(), 'complete')
    assert.equal(reader.deliveredText(), 'ab')
    assert.equal(text(reader.release('1')), end)
    assert.equal(reader.deliveredText(), 'abcd')
    assert.deepEqual(reader.release('1'), [])
    assert.deepEqual(reader.finish(), [])
    assert.equal(reader.deliveredText(), 'abcd')
  })

  it('is complete at the end of the body where the answer has ended before, and not otherwise', () => {
    const stopped = createPlainReader()
    stopped.push(Buffer.from(say({ isStop: true })))
    assert.equal(stopped.state(), 'open')
    stopped.finish()
    assert.equal(stopped.state(), 'complete')
    const broken = createPlainReader()
    broken.push(Buffer.from(say({ text: 'a' })))
    broken.finish()
    assert.equal(broken.state(), 'open')
  })

  it('holds back an end that comes without a stop, and is not complete with it', () => {
    const reader = createPlainReader()
    assert.equal(text(reader.push(Buffer.from(say({ text: 'a' }) + say({ isEnd: true })))), say({ text: 'a' }))
    reader.finish()
    assert.equal(reader.state(), 'open')
  })

  it('holds an error back with all that follows, also what is like a frame before it, and never forgets it', () => {
    const passing = createPlainReader()
    const plain = say({ text: 'a' })
    assert.equal(text(passing.push(Buffer.from(plain + plain))), plain + plain)
    assert.equal(text(passing.push(Buffer.from(say({ isError: true }) + plain))), '')
    assert.equal(text(passing.push(Buffer.from(plain))), '')
    assert.equal(passing.state(), 'failed')
    passing.push(Buffer.from(say({ isStop: true }) + say({ isEnd: true })))
    assert.equal(passing.state(), 'failed')
    assert.match(String(passing.endInError({ cost: '1', requestId: 'r' })), /isError/)
    const holding = createPlainReader()
    assert.equal(text(holding.push(Buffer.from(say({ isStop: true }) + say({ isError: true })))), '')
    assert.equal(holding.state(), 'failed')
  })

  it('keeps no more of errors than of what it holds back', () => {
    const reader = createPlainReader()
    const error = Buffer.from(say({ isError: true, text: 'x'.repeat(100_000) }))
    assert.throws(() => {
      for (let sent = 0; sent <= MOST_HELD_BYTES; sent += error.length) reader.push(error)
    }, RangeError)
    assert.equal(reader.state(), 'failed')
  })

  it('neither reads nor keeps what comes after the end, however much it is', () => {
    const reader = createPlainReader()
    const end = say({ isStop: true, isEnd: true })
    reader.push(Buffer.from(`${end}${say({ isError: true, text: 'late' })}${'x'.repeat(2 * MOST_HELD_BYTES)}`))
    assert.deepEqual(reader.push(Buffer.alloc(2 * MOST_HELD_BYTES)), [])
    assert.deepEqual(reader.finish(), [])
    assert.equal(reader.state(), 'complete')
    assert.equal(text(reader.release('1')), end)
    assert.equal(reader.deliveredText(), '')
  })

  it('gives nothing any more once it has released what it held back', () => {
    const reader = createPlainReader()
    reader.push(Buffer.from(say({ text: 'a', isStop: true })))
    reader.release('1')
    assert.deepEqual(reader.push(Buffer.from(say({ text: 'b' }))), [])
    assert.deepEqual(reader.finish(), [])
    assert.equal(reader.deliveredText(), 'a')
  })

  it('ends a last frame that has no blank line, and drops one that broke off', () => {
    const whole = createPlainReader()
    assert.equal(text(whole.push(Buffer.from(say({ text: 'a' }).trimEnd()))), '')
    assert.equal(text(whole.finish()), say({ text: 'a' }))
    assert.equal(whole.deliveredText(), 'a')
    for (const half of ['data: {"text":"b', 'event: x', 'event: x\n', 'da', ': comm']) {
      const broken = createPlainReader()
      broken.push(Buffer.from(half))
      assert.equal(text(broken.finish()), '', half)
    }
  })

  it('writes the cost into the last usage that was held back', () => {
    const reader = createPlainReader()
    const usage = (tokens: number, cost: string) =>
      `data: {"takesCost":"in_usage","usage":{"tokens":${tokens}${cost}}}\n\n`
    const passed = usage(1, '') + say({ isStop: true }) + usage(2, '') + usage(3, '') + say({ isEnd: true })
    assert.equal(text(reader.push(Buffer.from(passed))), usage(1, ''))
    const cost = ',"cost_usd":"0.1"'
    assert.equal(
      text(reader.release('0.1')),
      say({ isStop: true }) + usage(2, '') + usage(3, cost) + say({ isEnd: true }),
    )
  })

  it('writes the cost beside other members where no usage that was held back takes it, as late as it can', () => {
    const beside = (more: string, cost = '') => `data: {"takesCost":"beside"${more}${cost}}\n\n`
    const usage = (members: string, cost = '') => `data: {"takesCost":"in_usage","usage":{${members}}${cost}}\n\n`
    const cost = ',"cost_usd":"0.1"'
    const stop = say({ isStop: true })
    const released = (...frames: readonly string[]) => {
      const reader = createPlainReader()
      assert.equal(text(reader.push(Buffer.from(beside('') + stop + frames.join('')))), beside(''))
      return text(reader.release('0.1')).slice(stop.length)
    }
    assert.equal(
      released(beside(',"n":1'), beside(',"n":2'), ': x\n\n'),
      `${beside(',"n":1')}${beside(',"n":2', cost)}: x\n\n`,
    )
    assert.equal(released(beside(''), usage('"a":1'), beside('')), beside('') + usage(`"a":1${cost}`) + beside(''))
    assert.equal(released(beside(''), usage('')), beside('') + usage('', cost))
  })

  it('holds back up to its bound, and fails beyond it', () => {
    const stop = say({ isStop: true })
    const frame = `: ${'x'.repeat(1_020)}\n\n`
    const filled = createPlainReader()
    filled.push(Buffer.from(stop + frame.repeat(4_095)))
    filled.push(Buffer.from(`: ${'x'.repeat(1_020 - stop.length)}\n\n`))
    filled.finish()
    assert.equal(filled.state(), 'complete')
    assert.equal(text(filled.release('1')).length, MOST_HELD_BYTES)
    const over = createPlainReader()
    over.push(Buffer.from(stop))
    assert.throws(() => over.push(Buffer.from(frame.repeat(4_096))), RangeError)
    assert.equal(over.state(), 'failed')
    assert.equal(over.finish().length, 0)
    assert.equal(over.state(), 'failed')
  })

  it('does not count as delivered what it could not give, because it threw', () => {
    const reader = createPlainReader()
    reader.push(Buffer.from(say({ text: 'given' })))
    assert.throws(() => reader.push(Buffer.from(`${say({ text: 'lost' })}data: ${'x'.repeat(2_000_000)}`)), RangeError)
    assert.equal(reader.deliveredText(), 'given')
    assert.equal(reader.state(), 'failed')
  })

  it('keeps text up to its bound, whole characters only, and passes everything on', () => {
    const reader = createPlainReader()
    const frame = say({ text: '€'.repeat(100_000) })
    for (let at = 0; at < 5; at += 1) assert.equal(text(reader.push(Buffer.from(frame))), frame)
    reader.push(Buffer.from(say({ text: 'x' })))
    const kept = reader.deliveredText()
    assert.equal(kept, '€'.repeat(Math.floor(MOST_TEXT_BYTES / 3)))
  })

  it('keeps each character of text that comes in small parts', () => {
    const parts = Array.from({ length: 5_000 }, (_, at) => `${at}é`)
    const reader = createPlainReader()
    for (const part of parts) reader.push(Buffer.from(say({ text: part })))
    assert.equal(reader.deliveredText(), parts.join(''))
  })
})
