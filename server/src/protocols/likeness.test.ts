import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { count, seed } from '../../../harness/proof.ts'
import { createReader as createAnthropicReader } from './anthropic-reply.ts'
import { createReader as createOpenaiReader } from './openai-reply.ts'
import { createReader as createResponsesReader } from './openai-responses-reply.ts'
import type { StreamReader } from './protocol.ts'
import { createWithholdingReader, type Reading } from './withholding-reader.ts'

const CASES = count({ full: 20_000, reduced: 1_000 })

/** Bytes as they stand between quotes, of which some end the string, some escape, and some are no UTF-8. */
const texts = fc
  .array(
    fc.constantFrom('a', 'b', '.', ',', '{}', 'ä', '€', '\\n', '\\"', '\\u0061', '"', '\\', '\xff', '\xe2\x82', ' '),
    {
      maxLength: 4,
    },
  )
  .map((parts) => parts.join(''))

/** Frames with the text in place of each §, and with what could be taken for the place of the text. */
const openaiFrames = [
  '{"choices":[{"index":0,"delta":{"content":"§"}}]}',
  '{"choices":[{"index":0,"delta":{"content":"§"},"finish_reason":null}],"usage":null}',
  '{"id":"c","usage":null,"choices":[{"index":0,"delta":{"content":"§"}}]}',
  '{"choices":[{"index":0,"delta":{"content":"§"}}],"obfuscation":"a"}',
  '{"choices":[{"index":0,"delta":{"content":"a"}}],"obfuscation":"§"}',
  '{"§":1,"choices":[{"delta":{"content":"a"}}]}',
  '{"choices":[{"delta":{"content":"a","§":"b"}}]}',
  '{"choices":[{"delta":{"content":"a","content":"§"}}]}',
  '{"choices":[{"delta":{"content":"§","reasoning":"b"}}]}',
  '{"choices":[{"delta":{"content":"a"},"finish_reason":"§"}]}',
  '{"choices":[{"delta":{"tool_calls":[{"function":{"name":"","arguments":"§"}}]}}]}',
  '{"choices":[{"delta":{"content":"§"}}],"error":"§"}',
  '{"choices":[{"delta":{"content":"§"}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}',
  '§',
]
const anthropicFrames = [
  '{"type":"content_block_delta","delta":{"type":"text_delta","text":"§"}}',
  '{"type":"content_block_delta","delta":{"type":"§","text":"a"}}',
  '{"type":"§","delta":{"text":"a"}}',
  '{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":4}}',
]

const DELTA = '"type":"response.output_text.delta"'
const responsesFrames = [
  `{${DELTA},"item_id":"m","delta":"§","logprobs":[],"obfuscation":"x","sequence_number":7}`,
  `{${DELTA},"item_id":"m","delta":"§","logprobs":[],"obfuscation":"","sequence_number":123456}`,
  `{${DELTA},"sequence_number":8,"delta":"a","obfuscation":"§"}`,
  `{${DELTA},"sequence_number":01,"delta":"§"}`,
  `{${DELTA},"sequence_number":"§","delta":"a"}`,
  `{${DELTA},"delta":"§","sequence_number":12345678901234567890}`,
  `{${DELTA},"delta":"§","sequence_number":-1}`,
  `{${DELTA},"delta":"a","sequence_number":5,"error":"§"}`,
  '{"type":"response.function_call_arguments.delta","delta":"§","sequence_number":9}',
  '{"type":"response.output_text.done","text":"a§","sequence_number":10}',
  '{"type":"response.output_item.added","item":{"name":"§"},"sequence_number":11}',
  '{"type":"§.delta","delta":"a"}',
  '{"type":"response.completed","response":{"output":[],"usage":{"input_tokens":7,"output_tokens":3}}}',
]

function framesOf(shapes: readonly string[]): fc.Arbitrary<readonly Buffer[]> {
  const frame = fc
    .tuple(
      fc.constantFrom('', '', '', 'event: content_block_delta§', 'event: error§', '\xef\xbb\xbf', 'data: §', ': data§'),
      fc.constantFrom(...shapes),
      texts,
      fc.constantFrom('\n', '\n', '\n', '\r\n', '\r'),
    )
    .map(([before, shape, text, end]) =>
      Buffer.from(`${before.replace('§', end)}data: ${shape.replaceAll('§', text)}${end}${end}`, 'latin1'),
    )
  // Few of them, each often, so that there are some that are alike.
  return fc
    .tuple(fc.array(frame, { minLength: 1, maxLength: 4 }), fc.array(fc.nat(3), { minLength: 2, maxLength: 14 }))
    .map(([some, order]) => order.map((at) => some[at % some.length] ?? Buffer.alloc(0)))
}

/** The same frame with another text where there is a run of letters in it. */
const withTexts = (frames: readonly Buffer[], others: readonly string[]) =>
  frames.map((frame, at) => Buffer.from(frame.toString('latin1').replace('"a', `"${others[at] ?? 'a'}`), 'latin1'))

function seenOf(reader: StreamReader, pieces: readonly Buffer[]) {
  const passed = Buffer.concat(pieces.flatMap((piece) => reader.push(piece))).toString('latin1')
  const before = { passed, state: reader.state(), text: reader.deliveredText(), holds: reader.isHolding() }
  const last = Buffer.concat(reader.finish()).toString('latin1')
  return { before, last, state: reader.state(), reported: reader.reported(), text: reader.wholeText() }
}

const makers: [string, readonly string[], () => StreamReader][] = [
  ['a chat with usage', openaiFrames, () => createOpenaiReader({ choices: 2, wantsUsage: true })],
  ['a chat without usage', openaiFrames, () => createOpenaiReader({ choices: 1, wantsUsage: false })],
  ['responses', responsesFrames, () => createResponsesReader({})],
  ['messages', anthropicFrames, createAnthropicReader],
]

describe('frames that are alike', () => {
  for (const [title, shapes, create] of makers) {
    it(`are read in ${title} as if each were the only one of its kind`, () => {
      fc.assert(
        fc.property(framesOf(shapes), fc.array(texts, { maxLength: 14 }), (given, others) => {
          const frames = withTexts(given, others)
          const whole = Buffer.concat(frames)
          // What comes byte by byte is never found to be like anything.
          const bytes = Array.from(whole, (_, at) => whole.subarray(at, at + 1))
          const expected = seenOf(create(), bytes)
          assert.deepEqual(seenOf(create(), frames), expected)
          const [first = whole, ...rest] = frames
          assert.deepEqual(seenOf(create(), [first, Buffer.concat(rest)]), expected)
        }),
        { numRuns: CASES, seed },
      )
    })
  }

  /** How often frames are read, of a protocol in which every frame says what it is. */
  function readingsOf(pieces: readonly string[], varying: readonly string[] = []): number {
    let readings = 0
    const reader = createWithholdingReader({
      read: (_, json) => {
        readings += 1
        return (json ?? {}) as Reading
      },
      reported: () => ({}),
      varying,
      ending: { passed: () => {}, frames: () => '' },
    })
    for (const piece of pieces) reader.push(Buffer.from(piece))
    return readings
  }

  const say = (text: string, more = {}) => `data: ${JSON.stringify({ isPlain: true, text, ...more })}\n\n`

  it('are read once, and a trial made, however many come and in however few pieces', () => {
    const words = Array.from({ length: 100 }, (_, at) => say(`word ${at} ä`))
    assert.equal(readingsOf(words), 2)
    assert.equal(readingsOf([words[0] ?? '', words.slice(1).join('')]), 2)
  })

  it('are alike though they have numbers, and padding, that vary', () => {
    const vary = ['sequence_number', 'obfuscation']
    const more = (at: number) => ({ sequence_number: at, obfuscation: 'x'.repeat(at % 5) })
    const words = Array.from({ length: 100 }, (_, at) => say(`word ${at} ä`, more(at)))
    assert.equal(readingsOf(words, vary), 2)
    assert.equal(readingsOf([words[0] ?? '', words.slice(1).join('')], vary), 2)
  })

  it('are no longer looked for where none is like another', () => {
    const words = Array.from({ length: 100 }, (_, at) => say(`word ${at}`, { at }))
    assert.equal(readingsOf(words), 100 + 16)
  })
})
