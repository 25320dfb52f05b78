import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { countTokens as countCl100k } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens as countO200k } from 'gpt-tokenizer/encoding/o200k_base'
import { count, seed } from '../../../harness/proof.ts'
import { outputTokens as tokensBy3 } from '../../../sandbox/src/upstreams/models/tokens.ts'
import { TEXTS_BY_SCRIPT } from '../../../test/upstreams/texts.ts'
import { Fault } from '../kernel/fault.ts'
import { OVERHEAD } from './bound.ts'
import { openaiImages } from './openai-images.ts'
import type { ModelAsk, ModelLimits } from './protocol.ts'

const CASES = count({ full: 5_000, reduced: 300 })
const LIMITS: ModelLimits = { contextWindow: 32_000, outputCap: 100, outputMost: 6_240, partTokens: {} }
const AS_TEXT = { disallowedSpecial: new Set<string>() }

function asked(members: Record<string, unknown> = {}): ModelAsk {
  const text = JSON.stringify({ model: 'm', prompt: 'a fox', ...members })
  return openaiImages.ask({ body: JSON.parse(text), rawBody: Buffer.from(text), headers: {} }, LIMITS)
}

function refuses(members: Record<string, unknown>, expected: RegExp): void {
  assert.throws(
    () => asked(members),
    (error) => error instanceof Fault && error.code === 'invalid_request' && expected.test(error.message),
    JSON.stringify(members),
  )
}

describe('what a request for pictures asks for', () => {
  it('is described in words', () => {
    for (const prompt of [undefined, null, '', 5, ['a'], {}]) refuses({ prompt }, /"prompt"/)
  })

  it('is 1 to 10 pictures, one where it does not say', () => {
    for (const [n, choices] of [
      [undefined, 1],
      [null, 1],
      [1, 1],
      [10, 10],
    ] as const)
      assert.equal(asked({ n }).choices, choices)
    for (const n of [0, 11, 1.5, '2', -1, true, [1]]) refuses({ n }, /"n" must be a whole number from 1 to 10/)
  })

  it('has a size and a quality, auto where it does not say', () => {
    for (const [members, kind] of [
      [{}, 'auto/auto'],
      [{ size: '1024x1024' }, '1024x1024/auto'],
      [{ quality: 'high' }, 'auto/high'],
      [{ size: '1536x1024', quality: 'low' }, '1536x1024/low'],
      [{ size: null, quality: null }, 'auto/auto'],
      [{ size: 'auto', quality: 'auto' }, 'auto/auto'],
    ] as const)
      assert.equal(asked(members).imageKind, kind)
    for (const size of [1024, '', 'x'.repeat(33), {}]) refuses({ size }, /"size" must be a text/)
    for (const quality of [1, '', ['high']]) refuses({ quality }, /"quality" must be a text/)
  })

  it('may have as many tokens for each picture as the model declares, and no cap is sent', () => {
    const { outputLimit, isDefaultLimit, isStream, bodyFor } = asked({ n: 3, stream: false })
    assert.deepEqual([outputLimit, isDefaultLimit, isStream], [6_240, false, false])
    assert.deepEqual(Object.keys(JSON.parse(bodyFor('m').toString())), ['model', 'prompt', 'n', 'stream'])
    assert.equal(openaiImages.stream, undefined)
  })

  it('goes to the upstream byte for byte, but for the name of the model', () => {
    const rawBody = Buffer.from('{ "model":"m", "prompt":"\\u00e9", "n": 1.0 }')
    const read = openaiImages.ask({ body: JSON.parse(rawBody.toString()), rawBody, headers: {} }, LIMITS)
    assert.equal(read.bodyFor('m'), rawBody)
    assert.equal(read.bodyFor('up').toString(), rawBody.toString().replace('"m"', '"up"'))
  })

  it('takes every member that the protocol has', () => {
    asked({
      n: 2,
      size: '1024x1024',
      quality: 'high',
      style: 'vivid',
      background: 'transparent',
      output_format: 'webp',
      output_compression: 50,
      response_format: 'b64_json',
      moderation: 'low',
      user: 'u',
    })
  })

  it('MODEL-6 is refused by the name of what would come in parts, and of what may make a picture dearer', () => {
    refuses({ stream: true }, /"stream" is not supported/)
    refuses({ partial_images: 0 }, /"partial_images" is not supported/)
    refuses({ partial_images: 2 }, /"partial_images" is not supported/)
    for (const name of ['resolution', 'steps', 'image', 'num_images', 'sequential_image_generation', 'width'])
      refuses({ [name]: 2 }, new RegExp(`"${name}" is not supported: it may change the price of an image`))
    for (const name of ['N', 'Size', 'QUALITY', 'Partial_Images'])
      refuses({ [name]: 2 }, /is not supported in this spelling/)
  })
})

describe('the bound of a description', () => {
  const prose = Object.values(TEXTS_BY_SCRIPT).flat()
  const text = fc.oneof(
    fc.constantFrom(...prose),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 200 }),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200 }),
  )
  const counters: Readonly<Record<string, (text: string) => number>> = {
    'the sandbox': tokensBy3,
    o200k: (one) => countO200k(one, AS_TEXT),
    cl100k: (one) => countCl100k(one, AS_TEXT),
  }
  for (const [name, tokensOf] of Object.entries(counters))
    it(`is never below what ${name} counts, nor below the estimate`, () => {
      fc.assert(
        fc.property(text, (prompt) => {
          const { inputMost, inputEstimate, inputText } = asked({ prompt })
          assert.ok(tokensOf(prompt) <= inputMost - OVERHEAD.request)
          assert.ok(tokensOf(inputText()) <= inputMost)
          assert.ok(inputEstimate <= inputMost)
        }),
        { numRuns: CASES, seed },
      )
    })

  it('is the context window at the most', () => {
    assert.equal(asked({ prompt: 'a'.repeat(100_000) }).inputMost, 32_000)
  })
})

describe('what was used for pictures', () => {
  it('is what the upstream reports, with what it read from a cache apart', () => {
    const usage = { input_tokens: 50, output_tokens: 1_056, total_tokens: 1_106 }
    assert.deepEqual(openaiImages.usageOf({ usage }), {
      input: 50,
      output: 1_056,
      parts: { output_image: 1_056 },
    })
    const details = { text_tokens: 10, image_tokens: 40, cached_tokens: 20 }
    assert.deepEqual(openaiImages.usageOf({ usage: { ...usage, input_tokens_details: details } }), {
      input: 30,
      output: 1_056,
      cacheRead: 20,
      parts: { input_image: 30, output_image: 1_056 },
    })
    const more = { cached_tokens: 99 }
    assert.deepEqual(openaiImages.usageOf({ usage: { ...usage, input_tokens_details: more } }), {
      input: 0,
      output: 1_056,
      cacheRead: 50,
      parts: { output_image: 1_056 },
    })
  })

  it('is not known where nothing is reported: a picture can not be counted', () => {
    for (const usage of [undefined, null, {}, { output_tokens: '5' }, { output_tokens: -1 }, []])
      assert.deepEqual(openaiImages.usageOf({ data: [{ b64_json: 'AAAA' }], usage }), {})
    assert.equal(openaiImages.textOf({ data: [{ b64_json: 'AAAA', revised_prompt: 'a fox' }] }), '')
  })
})
