import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { count, seed } from '../../../harness/proof.ts'
import { geminiStream } from './gemini.ts'
import { createReader, hasMedia, textOf, usageOf } from './gemini-reply.ts'
import type { StreamReader } from './protocol.ts'

const CASES = count({ full: 20_000, reduced: 1_000 })
const USAGE = { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 }

function frame(members: object): string {
  return `data: ${JSON.stringify(members)}\r\n\r\n`
}

function candidate(text: string, members: object = {}): object {
  return { content: { role: 'model', parts: [{ text }] }, ...members }
}

function says(text: string, index = 0, members: object = {}): string {
  return frame({ candidates: [candidate(text, { index })], ...members })
}

function stops(text = '', index = 0, members: object = {}): string {
  return frame({ candidates: [candidate(text, { finishReason: 'STOP', index })], ...members })
}

function push(reader: StreamReader, ...frames: readonly string[]): string {
  return Buffer.concat(reader.push(Buffer.from(frames.join('')))).toString()
}

function release(reader: StreamReader, cost = '0.00012'): string {
  return Buffer.concat(reader.release(cost)).toString()
}

const reading = (choices = 1) => createReader({ choices })

describe('the usage of an answer', () => {
  const usage = (usageMetadata: unknown) => usageOf({ usageMetadata })

  it('has thoughts in the output, results of tools in the input, and the cache apart', () => {
    assert.deepEqual(
      usage({
        promptTokenCount: 100,
        toolUsePromptTokenCount: 10,
        candidatesTokenCount: 5,
        thoughtsTokenCount: 20,
        cachedContentTokenCount: 60,
        totalTokenCount: 135,
      }),
      { input: 50, output: 25, cacheRead: 60 },
    )
    assert.deepEqual(usage(USAGE), { input: 7, output: 3, cacheRead: 0 })
  })

  it('has zero for what is left out, where the rest is the total', () => {
    assert.deepEqual(usage({ promptTokenCount: 7, totalTokenCount: 7 }), { input: 7, output: 0, cacheRead: 0 })
    assert.deepEqual(usage({ promptTokenCount: 7, thoughtsTokenCount: 5, totalTokenCount: 12 }), {
      input: 7,
      output: 5,
      cacheRead: 0,
    })
    assert.deepEqual(usage({ totalTokenCount: 0 }), { input: 0, output: 0, cacheRead: 0 })
  })

  it('has a cache beside the prompt where the total says so, and only the rest of its excess is output', () => {
    const counts = { promptTokenCount: 100, candidatesTokenCount: 10, cachedContentTokenCount: 10_000 }
    assert.deepEqual(usage({ ...counts, totalTokenCount: 10_110 }), { input: 100, output: 10, cacheRead: 10_000 })
    assert.deepEqual(usage({ ...counts, totalTokenCount: 10_115 }), { input: 100, output: 15, cacheRead: 10_000 })
    assert.deepEqual(usage({ ...counts, totalTokenCount: 110 }), { input: 0, output: 10, cacheRead: 100 })
  })

  it('hears nothing of what is left out where the rest is not the total, or there is none', () => {
    assert.deepEqual(usage({ promptTokenCount: 7, totalTokenCount: 12 }), { input: 7 })
    assert.deepEqual(usage({ promptTokenCount: 7 }), { input: 7 })
    assert.deepEqual(usage({ candidatesTokenCount: 3 }), { output: 3 })
    assert.deepEqual(usage({ thoughtsTokenCount: 3 }), {})
    assert.deepEqual(usage({ cachedContentTokenCount: 3, candidatesTokenCount: 4 }), { output: 4 })
    assert.deepEqual(usage({}), {})
  })

  it('takes a zero as a report, and never more from the cache than the input has', () => {
    assert.deepEqual(usage({ promptTokenCount: 0, candidatesTokenCount: 0 }), { input: 0, output: 0 })
    assert.deepEqual(usage({ promptTokenCount: 5, candidatesTokenCount: 1, cachedContentTokenCount: 1e11 }), {
      input: 0,
      output: 1,
      cacheRead: 5,
    })
  })

  it('hears nothing in what is no plausible count, and does not take it for one that was left out', () => {
    for (const bad of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e13, '5', true, [5], { value: 5 }]) {
      assert.deepEqual(usage({ promptTokenCount: bad, candidatesTokenCount: bad, totalTokenCount: bad }), {})
      assert.deepEqual(usage({ promptTokenCount: 7, candidatesTokenCount: bad, totalTokenCount: 7 }), { input: 7 })
      assert.deepEqual(usage({ promptTokenCount: 7, candidatesTokenCount: 3, cachedContentTokenCount: bad }), {
        input: 7,
        output: 3,
      })
    }
    assert.deepEqual(usage({ ...USAGE, thoughtsTokenCount: null }), { input: 7, output: 3, cacheRead: 0 })
  })

  it('is nothing where there is none', () => {
    for (const json of [undefined, null, 'x', 1, [], {}, { usageMetadata: null }, { usageMetadata: [] }]) {
      assert.deepEqual(usageOf(json), {})
    }
  })
})

describe('the text of an answer', () => {
  it('is what the model wrote, in every part of every candidate', () => {
    const parts = [
      { text: 'a', thought: true },
      { text: 'b', thoughtSignature: 'no' },
      { functionCall: { id: 'no', name: 'c', args: { d: [1, 'é'] } } },
      { functionCall: { name: 'e' } },
      { functionCall: { partialArgs: [{ jsonPath: '$.f', stringValue: 'x', willContinue: true }] } },
      { inlineData: { data: 'no' } },
    ]
    const candidates = [{ content: { parts } }, { content: { parts: [{ text: 'g' }] } }]
    assert.equal(textOf({ candidates }), 'abc{"d":[1,"é"]}e$.fxg')
  })

  it('is empty where the answer has another shape', () => {
    for (const json of [undefined, null, [], { candidates: 'x' }, { candidates: [null, 1, {}, { content: 'x' }] }]) {
      assert.equal(textOf(json), '')
    }
    assert.equal(textOf({ candidates: [{ content: { parts: [null, 1, { text: 5 }, { functionCall: 'x' }] } }] }), '')
  })

  it('does without arguments that are nested too deeply', () => {
    const args = JSON.parse(`{"a":${'['.repeat(300_000)}${']'.repeat(300_000)}}`)
    const parts = [{ functionCall: { name: 'deep', args } }, { text: 'b' }]
    assert.equal(textOf({ candidates: [{ content: { parts } }] }), 'deepb')
  })
})

describe('a call whose arguments come in parts', () => {
  it('is counted by their values, and by each path once', () => {
    const reader = reading()
    const part = (...partialArgs: object[]) =>
      frame({ candidates: [{ content: { parts: [{ functionCall: { partialArgs, willContinue: true } }] } }] })
    const city = (stringValue: string) => part({ jsonPath: '$.city', stringValue, willContinue: true })
    push(reader, ...Array.from({ length: 1_000 }, () => city('a')))
    push(reader, part({ jsonPath: '$.n', numberValue: 5 }, { jsonPath: '$.b', boolValue: true }), part({}))
    assert.equal(reader.deliveredText(), `$.city${'a'.repeat(1_000)}$.n5$.btrue`)
  })
})

describe('a stream of content', () => {
  it('passes byte for byte, is held back from the finish reason on, and has the cost in its last usage', () => {
    const reader = reading()
    const passed = [says('Hel'), ': ping\r\n\r\n', says('l', 0, { usageMetadata: USAGE })]
    assert.equal(push(reader, ...passed), passed.join(''))
    const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 4, totalTokenCount: 11 }
    assert.equal(push(reader, stops('o', 0, { usageMetadata })), '')
    assert.equal(reader.state(), 'open')
    assert.equal(Buffer.concat(reader.finish()).toString(), '')
    assert.equal(reader.state(), 'complete')
    assert.equal(reader.deliveredText(), 'Hell')
    assert.deepEqual(reader.reported(), { input: 7, output: 4, cacheRead: 0 })
    assert.equal(release(reader), stops('o', 0, { usageMetadata: { ...usageMetadata, cost_usd: '0.00012' } }))
    assert.equal(reader.deliveredText(), 'Hello')
    assert.equal(release(reader), '')
  })

  it('takes the usage from a frame after the finish reason too, and writes the cost there', () => {
    const reader = reading()
    const early = { usageMetadata: { promptTokenCount: 7, totalTokenCount: 7 } }
    push(reader, says('a'), stops('b', 0, early), frame({ usageMetadata: USAGE, modelVersion: 'é' }), ': ping\n\n')
    reader.finish()
    assert.deepEqual(reader.reported(), { input: 7, output: 3, cacheRead: 0 })
    assert.equal(
      release(reader, '1'),
      `${stops('b', 0, early)}${frame({ usageMetadata: { ...USAGE, cost_usd: '1' }, modelVersion: 'é' })}: ping\n\n`,
    )
  })

  it('does not take a count for zero before the end, only because it is not there yet', () => {
    const reader = reading()
    push(reader, says('a', 0, { usageMetadata: { promptTokenCount: 7, totalTokenCount: 7 } }))
    assert.deepEqual(reader.reported(), { input: 7 })
    push(reader, says('b', 0, { usageMetadata: { ...USAGE, cachedContentTokenCount: 2 } }))
    assert.deepEqual(reader.reported(), { input: 5, output: 3, cacheRead: 2 })
    push(reader, stops())
    assert.deepEqual(reader.reported(), { input: 5, output: 3, cacheRead: 2 })
    push(reader, frame({ usageMetadata: { candidatesTokenCount: 9 } }))
    assert.deepEqual(reader.reported(), { input: 5, output: 9, cacheRead: 2 })
    push(reader, frame({ usageMetadata: { promptTokenCount: 8, totalTokenCount: 8 } }))
    assert.deepEqual(reader.reported(), { input: 8, output: 0, cacheRead: 0 })
  })

  it('does not take an early report of the output for one of what was written since', () => {
    const reader = reading()
    const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 1, totalTokenCount: 8 }
    push(reader, says('He', 0, { usageMetadata }))
    assert.deepEqual(reader.reported(), { input: 7, output: 1 })
    push(reader, says('llo'), says(' you', 0, { usageMetadata: { promptTokenCount: 7, totalTokenCount: 8 } }))
    assert.deepEqual(reader.reported(), { input: 7 })
    push(reader, says('', 0, { usageMetadata: USAGE }))
    assert.deepEqual(reader.reported(), { input: 7, output: 3 })
    push(reader, stops('!'))
    assert.deepEqual(reader.reported(), { input: 7 })
  })

  it('waits for the finish reason of every candidate', () => {
    const reader = reading(3)
    assert.equal(push(reader, stops('a', 0), says('b', 1), stops('', 0)), stops('a', 0) + says('b', 1) + stops('', 0))
    const both = frame({
      candidates: [candidate('c', { finishReason: 'MAX_TOKENS', index: 1 }), candidate('d', { index: 2 })],
    })
    assert.equal(push(reader, both, stops('e', 2), says('f')), both)
    reader.finish()
    assert.equal(reader.state(), 'complete')
    assert.equal(release(reader), stops('e', 2) + says('f', 0, { cost_usd: '0.00012' }))
  })

  it('takes a missing index for the first, and no reason for none', () => {
    const unspecified = frame({ candidates: [candidate('a', { finishReason: 'FINISH_REASON_UNSPECIFIED' })] })
    const empty = frame({ candidates: [candidate('a', { finishReason: '' })] })
    const reader = reading()
    assert.equal(push(reader, unspecified, empty), unspecified + empty)
    assert.equal(push(reader, frame({ candidates: [{ finishReason: 'SAFETY' }] })), '')
  })

  it('ends where the prompt was blocked, with nothing generated', () => {
    const blocked = frame({
      promptFeedback: { blockReason: 'SAFETY' },
      usageMetadata: { promptTokenCount: 7, totalTokenCount: 7 },
    })
    const reader = reading(2)
    assert.equal(push(reader, blocked), '')
    reader.finish()
    assert.equal(reader.state(), 'complete')
    assert.equal(reader.deliveredText(), '')
    assert.deepEqual(reader.reported(), { input: 7, output: 0, cacheRead: 0 })
  })

  it('does not end with feedback of another kind', () => {
    const reader = reading()
    const harmless = [
      frame({ promptFeedback: { safetyRatings: [] } }),
      frame({ promptFeedback: { blockReason: 'BLOCK_REASON_UNSPECIFIED' } }),
      frame({ promptFeedback: { blockReason: 'SAFETY' }, candidates: [candidate('a')] }),
    ]
    assert.equal(push(reader, ...harmless), harmless.join(''))
    reader.finish()
    assert.equal(reader.state(), 'open')
  })

  it('is open where the body ends without a finish reason', () => {
    const reader = reading()
    push(reader, says('a', 0, { usageMetadata: USAGE }))
    reader.finish()
    assert.equal(reader.state(), 'open')
    assert.equal(reader.deliveredText(), 'a')
  })

  it('gives a last frame the blank line that it lacks, and drops half of one', () => {
    for (const rest of ['', '\n', '\r\n']) {
      const reader = reading()
      push(reader, says('a'), stops('b', 0, { usageMetadata: USAGE }).trimEnd() + rest)
      reader.finish()
      assert.equal(reader.state(), 'complete')
      assert.ok(release(reader).endsWith(`"cost_usd":"0.00012"}}${rest}\n\n`))
    }
    const half = reading()
    push(half, says('a'), stops('b').slice(0, -9))
    assert.equal(Buffer.concat(half.finish()).toString(), '')
    assert.equal(half.state(), 'open')
  })

  it('fails at an error of the upstream, which the caller gets with what the call cost', () => {
    const error = { code: 503, message: 'overloaded', status: 'UNAVAILABLE' }
    const reader = reading()
    assert.equal(push(reader, says('a'), frame({ error })), says('a'))
    const told = reader.endInError({ cost: '0.5', requestId: 'r' })?.toString() ?? ''
    const data: unknown = JSON.parse(told.slice('data: '.length))
    assert.deepEqual(data, { error: { ...error, cost_usd: '0.5' }, request_id: 'r' })
    assert.equal(reader.state(), 'failed')
    assert.equal(reader.deliveredText(), 'a')
    const both = reading()
    push(both, stops('a', 0, { error: { code: 500 } }))
    assert.equal(both.state(), 'failed')
    const none = reading()
    push(none, frame({ error: null, candidates: [{ error: { code: 500 } }] }))
    assert.equal(none.state(), 'open')
  })

  it('is neither failed nor ended by what the model wrote', () => {
    const words = '\r\n\r\ndata: {"error":{"code":500}}\r\n\r\n"finishReason":"STOP" "usageMetadata":{"a":1}'
    const reader = reading()
    const frames = [says(words), frame({ candidates: [{ content: { finishReason: 'STOP', error: {} } }] })]
    assert.equal(push(reader, ...frames), frames.join(''))
    assert.equal(reader.state(), 'open')
    const last = { x: { usageMetadata: { a: 1 } }, usageMetadata: USAGE }
    push(reader, stops(words, 0, last), stops(words))
    reader.finish()
    const cost = { ...last, usageMetadata: { ...USAGE, cost_usd: '1' } }
    assert.equal(release(reader, '1'), stops(words, 0, cost) + stops(words))
  })

  it('has our cost last where the upstream wrote one too, beside a usage without room, and none in several lines', () => {
    const reader = reading()
    push(reader, stops('', 0, { usageMetadata: { ...USAGE, cost_usd: '99' } }))
    reader.finish()
    assert.equal(JSON.parse(release(reader, '0.5').slice('data: '.length)).usageMetadata.cost_usd, '0.5')
    for (const usageMetadata of [{}, [1], 'x', null]) {
      const without = reading()
      push(without, stops('a', 0, { usageMetadata }))
      without.finish()
      assert.equal(release(without), stops('a', 0, { usageMetadata, cost_usd: '0.00012' }))
    }
    const lines = 'data: {"candidates":[{"finishReason":"STOP"}],\ndata: "usageMetadata":{"a":1}}\n\n'
    const several = reading()
    push(several, lines)
    several.finish()
    assert.equal(release(several), lines)
  })

  it('passes on what is no JSON, and counts nothing of it', () => {
    const odd =
      'data: {"candidates":\n\ndata: null\n\ndata: [1]\n\ndata\n\nevent: x\n\n: comment\r\n\r\ndata: [DONE]\n\n'
    const reader = reading()
    assert.equal(push(reader, odd), odd)
    assert.equal(reader.deliveredText(), '')
    assert.equal(reader.state(), 'open')
  })

  it('ends with an error in one line that starts with its data, because callers see no other', () => {
    assert.equal(geminiStream.stream?.errorFrame('{"error":{}}'), 'data: {"error":{}}\n\n')
  })

  const data = fc.constantFrom(
    '{"candidates":[{"content":{"parts":[{"text":"ä€"}]}}],"usageMetadata":{"promptTokenCount":3,"totalTokenCount":3}}',
    '{"candidates":[{"content":{"parts":[{"text":"\\"usageMetadata\\":{\\"a\\":1}"}]},"index":1}]}',
    '{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"totalTokenCount":3}}',
    '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP","index":1}]}',
    '{"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}}',
    '{"promptFeedback":{"blockReason":"OTHER"}}',
    ...['{"error":{"code":503}}', '{"error":null}', 'no json', '[]', 'null', '{"usageMetadata":'],
  )
  const piece = fc.oneof(
    { weight: 8, arbitrary: data.map((json) => `data: ${json}§§`) },
    fc.constantFrom(
      ': ping§§',
      '§',
      'event: error§data: {}§§',
      'data: {"usageMetadata":§data: {"a":1}}§§',
      'data: {"ca',
    ),
  )
  const stream = fc
    .tuple(fc.constantFrom('', '\uFEFF'), fc.array(piece, { maxLength: 12 }), fc.constantFrom('\n', '\r\n', '\r'))
    .map(([bom, pieces, end]) => Buffer.from(bom + pieces.join('').replaceAll('§', end)))

  /** Everything that can be seen of a reader whose stream comes in these pieces. */
  function outcome(choices: number, pieces: readonly Buffer[]) {
    const reader = reading(choices)
    const passed = Buffer.concat(pieces.flatMap((one) => reader.push(one))).toString()
    const before = { passed, text: reader.deliveredText() }
    const last = Buffer.concat(reader.finish()).toString()
    const seen = { before, last, state: reader.state(), reported: reader.reported(), text: reader.deliveredText() }
    return { ...seen, released: release(reader, '0.25'), all: reader.deliveredText() }
  }

  it('gives and says the same, however it is cut', () => {
    fc.assert(
      fc.property(stream, fc.integer({ min: 1, max: 2 }), fc.array(fc.nat(2_000)), (bytes, choices, cuts) => {
        const places = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((one, other) => one - other)
        const whole = outcome(choices, [bytes])
        const pieces = places.map((end, at) => bytes.subarray(places[at - 1] ?? 0, end))
        assert.deepEqual(outcome(choices, pieces), whole)
        const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
        assert.deepEqual(outcome(choices, single), whole)
        // Nothing but the cost and a missing blank line is ever added; nothing but half of a frame is ever lost.
        const given = (whole.before.passed + whole.last + whole.released).replace(',"cost_usd":"0.25"', '')
        const sent = bytes.toString()
        assert.ok(given === sent || given === `${sent}\n\n` || sent.startsWith(given), given)
      }),
      { numRuns: CASES, seed },
    )
  })
})

describe('what is no text in an answer', () => {
  const answer = (...parts: readonly object[]) => ({
    candidates: [{ content: { parts: [{ text: 'a' }] } }, { content: { parts } }],
  })

  it('is a part with data in either spelling, and no text or call', () => {
    for (const part of [{ inlineData: { data: 'AAAA' } }, { inline_data: {} }, { fileData: { fileUri: 'a' } }])
      assert.equal(hasMedia(answer({ text: 'a' }, part)), true)
    for (const json of [answer({ text: 'a' }, { functionCall: {} }), { promptFeedback: {} }, null])
      assert.equal(hasMedia(json), false)
  })
})
