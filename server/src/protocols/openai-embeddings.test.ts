import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { countTokens as countCl100k } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens as countO200k } from 'gpt-tokenizer/encoding/o200k_base'
import { count, seed } from '../../../harness/proof.ts'
import { embeddingTokens } from '../../../sandbox/src/upstreams/models/openai-embeddings.ts'
import { TEXTS_BY_SCRIPT } from '../../../test/upstreams/texts.ts'
import { Fault } from '../kernel/fault.ts'
import { openaiEmbeddings } from './openai-embeddings.ts'
import type { ModelAsk, ModelLimits } from './protocol.ts'

const CASES = count({ full: 5_000, reduced: 300 })
const LIMITS: ModelLimits = { contextWindow: 8_192, outputCap: 1, outputMost: 1, partTokens: {} }
const AS_TEXT = { disallowedSpecial: new Set<string>() }

function asked(input: unknown, members: Record<string, unknown> = {}, limits = LIMITS): ModelAsk {
  const text = JSON.stringify({ model: 'm', input, ...members })
  return openaiEmbeddings.ask({ body: JSON.parse(text), rawBody: Buffer.from(text), headers: {} }, limits)
}

function refuses(input: unknown, expected: RegExp, members: Record<string, unknown> = {}): void {
  assert.throws(
    () => asked(input, members),
    (error) => error instanceof Fault && error.code === 'invalid_request' && expected.test(error.message),
    JSON.stringify(input)?.slice(0, 100),
  )
}

describe('what a request for embeddings asks for', () => {
  it('is a text, texts, tokens, or several rows of tokens; of nothing else', () => {
    for (const input of ['a', ['a'], ['a', 'b'], [1], [0, 1, 2], [[1], [2, 3]], '', ['']]) asked(input)
    for (const input of [undefined, null, 5, {}, [], [{}], [null], [1, 'a'], [[1], 'a'], [[]], [[1], []]])
      refuses(input, /"input" must/)
    for (const ids of [[-1], [1.5], [Number.MAX_SAFE_INTEGER + 1], [[1e300]], [true], ['1', 2]])
      refuses(ids, /"input" must/)
  })

  it('has 2,048 inputs at the most, however many tokens one has', () => {
    asked(Array.from({ length: 2_048 }, () => 'a'))
    asked(Array.from({ length: 5_000 }, () => 1))
    refuses(
      Array.from({ length: 2_049 }, () => 'a'),
      /"input" has 2049 inputs; the limit is 2048/,
    )
    refuses(
      Array.from({ length: 2_049 }, () => [1]),
      /2049 inputs/,
    )
  })

  it('has no output, no cap and no stream', () => {
    const { isStream, choices, outputLimit, isDefaultLimit } = asked('a', { stream: false })
    assert.deepEqual([isStream, choices, outputLimit, isDefaultLimit], [false, 1, 0, false])
    assert.equal(openaiEmbeddings.stream, undefined)
    refuses('a', /"stream" is not supported/, { stream: true })
    refuses('a', /"stream" is not supported/, { stream: 'true' })
  })

  it('goes to the upstream byte for byte, but for the name of the model', () => {
    const rawBody = Buffer.from('{ "model":"m", "input":["\\u00e9"], "dimensions": 8.0, "x":1 }')
    const read = openaiEmbeddings.ask({ body: JSON.parse(rawBody.toString()), rawBody, headers: {} }, LIMITS)
    assert.equal(read.bodyFor('m'), rawBody)
    assert.equal(read.bodyFor('up').toString(), rawBody.toString().replace('"m"', '"up"'))
  })

  it('MODEL-6 is refused by the name of what costs money beyond its tokens, or hides input', () => {
    for (const [name, value] of Object.entries({
      messages: [{ role: 'user', content: 'a' }],
      models: ['a'],
      fallbacks: ['a'],
      route: 'fallback',
      chat_template: '{{ messages }}',
      mm_processor_kwargs: {},
      service_tier: 'flex',
    }))
      refuses('a', new RegExp(`"${name}"`), { [name]: value })
    refuses('a', /"Input" is not supported in this spelling/, { Input: 'b' })
    asked('a', { service_tier: 'default', user: 'u', encoding_format: 'base64', messages: null, truncate: 'END' })
  })
})

describe('the bound of what is embedded', () => {
  const OVERHEAD = asked('').inputMost

  it('is the bytes of each text and a share for each, within the context window of each', () => {
    assert.equal(OVERHEAD, 16)
    assert.equal(asked('é'.repeat(100)).inputMost, 200 + OVERHEAD)
    assert.equal(asked(['a', 'bc']).inputMost, 3 + 2 * OVERHEAD)
    assert.equal(asked('a'.repeat(100_000)).inputMost, 8_192)
    assert.equal(asked(['a'.repeat(100_000), 'a'.repeat(100_000), 'b']).inputMost, 2 * 8_192 + 1 + OVERHEAD)
  })

  it('is one for each id of a token', () => {
    assert.equal(asked([1, 2, 3]).inputMost, 3 + OVERHEAD)
    assert.equal(asked([[1, 2], [3]]).inputMost, 3 + 2 * OVERHEAD)
    assert.equal(asked(Array.from({ length: 9_000 }, () => 7)).inputMost, 8_192)
    assert.equal(asked([[1, 2], [3]]).inputEstimate, 3)
  })

  it('has what we do not know once for each input: it may be an instruction before each', () => {
    const instruction = 'i'.repeat(500)
    const more = asked(['a', 'b'], { instruction }).inputMost - asked(['a', 'b']).inputMost
    assert.ok(more >= 1_000 && more < 1_100, `${more}`)
    assert.equal(asked('a', { user: 'u'.repeat(500), dimensions: 8 }).inputMost, 1 + OVERHEAD)
  })

  const prose = Object.values(TEXTS_BY_SCRIPT).flat()
  const text = fc.oneof(
    fc.constantFrom(...prose).chain((one) => fc.nat(one.length).map((from) => one.slice(from, from + 300))),
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.string({ unit: 'grapheme', maxLength: 200 }),
  )
  const input = fc.oneof(text, fc.array(text, { minLength: 1, maxLength: 6 }))
  const counters: Readonly<Record<string, (texts: readonly string[]) => number>> = {
    'the sandbox': embeddingTokens,
    o200k: (texts) => texts.reduce((sum, one) => sum + countO200k(one, AS_TEXT), 0),
    cl100k: (texts) => texts.reduce((sum, one) => sum + countCl100k(one, AS_TEXT), 0),
  }
  for (const [name, tokensOf] of Object.entries(counters))
    it(`is never below what ${name} counts, nor below the estimate, nor below what is counted afterwards`, () => {
      fc.assert(
        fc.property(input, (one) => {
          const texts = typeof one === 'string' ? [one] : one
          const { inputMost, inputEstimate, inputText } = asked(one)
          assert.ok(tokensOf(texts) <= inputMost - texts.length * (OVERHEAD - 1))
          assert.ok(inputEstimate <= inputMost)
          assert.ok(tokensOf([inputText()]) <= inputMost)
        }),
        { numRuns: CASES, seed },
      )
    })
})

describe('what was used for embeddings', () => {
  const data = [{ object: 'embedding', index: 0, embedding: [0.1] }]

  it('is what the upstream reports as input, and no output', () => {
    const usage = { prompt_tokens: 7, total_tokens: 7 }
    assert.deepEqual(openaiEmbeddings.usageOf({ data, usage }), { input: 7, output: 0 })
    const cached = { ...usage, prompt_tokens_details: { cached_tokens: 3 } }
    assert.deepEqual(openaiEmbeddings.usageOf({ data, usage: cached }), { input: 4, output: 0, cacheRead: 3 })
  })

  it('is to be counted where vectors came and nothing was reported', () => {
    for (const usage of [undefined, null, {}, { prompt_tokens: '7' }, { prompt_tokens: -1 }])
      assert.deepEqual(openaiEmbeddings.usageOf({ data, usage }), { output: 0 })
    assert.equal(openaiEmbeddings.textOf({ data }), '')
  })

  it('is not known where no vectors came, so that nobody pays for them', () => {
    for (const nothing of [undefined, null, [], {}, 'data'])
      assert.deepEqual(openaiEmbeddings.usageOf({ data: nothing, usage: { prompt_tokens: 7 } }), {})
  })

  it('is counted as the texts, or as one token for each id, by every tokenizer that we have', () => {
    assert.equal(asked(['a b', 'c']).inputText(), 'a b\nc')
    for (const input of [Array.from({ length: 1_000 }, (_, id) => id), [[5, 6], [7]]]) {
      const text = asked(input).inputText()
      const ids = input.flat().length
      assert.deepEqual([countO200k(text), countCl100k(text), Math.ceil(Buffer.byteLength(text) / 3)], [ids, ids, ids])
    }
  })
})
