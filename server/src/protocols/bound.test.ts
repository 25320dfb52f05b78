import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { countTokens as countCl100k } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens as countO200k } from 'gpt-tokenizer/encoding/o200k_base'
import { judge } from '../../../harness/figures.ts'
import { count, recordProof, seed } from '../../../harness/proof.ts'
import { TEXTS_BY_SCRIPT } from '../../../test/upstreams/texts.ts'
import * as anthropic from './anthropic-request.ts'
import { inputOf, OVERHEAD, type Prompt } from './bound.ts'
import { estimateTokens } from './estimate.ts'
import * as openai from './openai-request.ts'
import * as openaiResponses from './openai-responses-request.ts'
import type { ModelLimits } from './protocol.ts'

const CASES = count({ full: 10_000, reduced: 300 })
/** Parts of each text, from the beginning of one word to the end of another. */
const SLICES = count({ full: 500, reduced: 50 })
const LIMITS: ModelLimits = { contextWindow: 1e9, outputCap: 10, outputMost: 10, partTokens: { image: 256 } }
const IMAGE_TOKENS = 256
/** What starts an answer. */
const REPLY_TOKENS = 3
const AS_TEXT = { disallowedSpecial: new Set<string>() }

const TOKENIZERS: Readonly<Record<string, (text: string) => number>> = {
  o200k: (text) => countO200k(text, AS_TEXT),
  cl100k: (text) => countCl100k(text, AS_TEXT),
}

const prose = Object.values(TEXTS_BY_SCRIPT).flat()
/** What vocabularies know little of: any character at all, marks in rows, parts of characters, runs of one sign. */
const strange = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.string({ unit: 'grapheme', maxLength: 200 }),
  fc
    .array(
      fc.constantFrom(
        '\u0958',
        '\ufdfa',
        '\uff13',
        '\u2126',
        '\u0300',
        '\u200d',
        '🧑‍🚀',
        '𒀀',
        '<|im_start|>',
        '\t',
        '\r\n',
        '\\',
        '"',
        '\u0000',
      ),
    )
    .map((parts) => parts.join('')),
  fc
    .tuple(fc.string({ unit: 'binary', minLength: 1, maxLength: 3 }), fc.integer({ min: 1, max: 100 }))
    .map(([one, times]) => one.repeat(times)),
)
const written = fc
  .tuple(fc.constantFrom(...prose), fc.nat(300), fc.nat(300))
  .map(([text, from, length]) => text.slice(from, from + length))
const text = fc.oneof(written, strange)
const name = fc.stringMatching(/^[a-zA-Z0-9_-]{1,40}$/)
const value = fc.oneof(
  text,
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.constant(null),
)
const schema = fc.dictionary(name, fc.oneof(value, fc.array(value, { maxLength: 8 }), fc.dictionary(name, value)), {
  maxKeys: 5,
})
const definition = fc.record({ name, description: text, parameters: schema })
const image = fc.constant('data:image/png;base64,AAAA')

type Conversation = {
  readonly messages: readonly {
    role: string
    name: string | undefined
    texts: readonly string[]
    images: readonly string[]
  }[]
  readonly tools: readonly { name: string; description: string; parameters: Record<string, unknown> }[]
}
const conversation: fc.Arbitrary<Conversation> = fc.record({
  messages: fc.array(
    fc.record({
      role: fc.constantFrom('system', 'user', 'assistant', 'developer'),
      name: fc.option(name, { nil: undefined }),
      texts: fc.array(text, { maxLength: 3 }),
      images: fc.array(image, { maxLength: 2 }),
    }),
    { minLength: 1, maxLength: 5 },
  ),
  tools: fc.array(definition, { maxLength: 3 }),
})

const asRequest = (body: unknown) => ({ body, rawBody: Buffer.from(JSON.stringify(body)), headers: {} })

function openaiAsk({ messages, tools }: Conversation) {
  const body = {
    model: 'm',
    max_tokens: 1,
    messages: messages.map(({ role, name, texts, images }) => ({
      role,
      ...(name !== undefined && { name }),
      content: [
        ...texts.map((one) => ({ type: 'text', text: one })),
        ...images.map((url) => ({ type: 'image_url', image_url: { url } })),
      ],
    })),
    tools: tools.map((one) => ({ type: 'function', function: one })),
  }
  return openai.ask(asRequest(body), LIMITS)
}

function anthropicAsk({ messages, tools }: Conversation) {
  const body = {
    model: 'm',
    max_tokens: 1,
    messages: messages.map(({ role, texts, images }) => ({
      role,
      content: [
        ...texts.map((one) => ({ type: 'text', text: one })),
        ...images.map((url) => ({ type: 'image', source: { type: 'url', url } })),
      ],
    })),
    tools: tools.map(({ parameters, ...rest }) => ({ ...rest, input_schema: parameters })),
  }
  return anthropic.ask(asRequest(body), LIMITS)
}

function responsesAsk({ messages, tools }: Conversation) {
  const body = {
    model: 'm',
    max_output_tokens: 1,
    input: messages.map(({ role, texts, images }) => ({
      role,
      content: [
        ...texts.map((one) => ({ type: 'input_text', text: one })),
        ...images.map((image_url) => ({ type: 'input_image', image_url })),
      ],
    })),
    tools: tools.map((one) => ({ type: 'function', ...one })),
  }
  return openaiResponses.ask(asRequest(body), LIMITS)
}

/** As the protocol's documentation counts a chat: 3 for each message and 3 for the answer's start, 1 for a name. */
function renderedTokens({ messages, tools }: Conversation, tokensOf: (text: string) => number): number {
  let tokens = REPLY_TOKENS
  for (const { role, name, texts, images } of messages) {
    tokens += 3 + tokensOf(role) + images.length * IMAGE_TOKENS
    if (name !== undefined) tokens += 1 + tokensOf(name)
    for (const one of texts) tokens += tokensOf(one)
  }
  return tokens + Math.max(...writtenForms(tools).map(tokensOf))
}

/** The forms in which an upstream may write tools into a prompt: as they are, indented, and escaped to ASCII. */
function writtenForms(tools: unknown): string[] {
  const indented = JSON.stringify(tools, undefined, 4)
  return [JSON.stringify(tools), indented, inAscii(indented)]
}

function inAscii(json: string): string {
  return json.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** As the sandbox counts: one token for every 3 bytes of each text. */
const bytesBy3 = (one: string) => Math.ceil(Buffer.byteLength(one) / 3)

describe('the bound of an input', () => {
  const counters = { ...TOKENIZERS, 'the sandbox': bytesBy3 }
  for (const [named, tokensOf] of Object.entries(counters)) {
    it(`is never below what ${named} counts`, () => {
      let closest = Number.POSITIVE_INFINITY
      fc.assert(
        fc.property(conversation, (talk) => {
          const tokens = renderedTokens(talk, tokensOf)
          // Without the shares of a whole request, which would hide what a short text lacks.
          const around = OVERHEAD.request + (talk.tools.length > 0 ? OVERHEAD.anyTools : 0)
          for (const { inputMost, inputEstimate } of [openaiAsk(talk), responsesAsk(talk), anthropicAsk(talk)]) {
            assert.ok(tokens <= inputMost - around + REPLY_TOKENS, `${tokens} > ${inputMost} - ${around}`)
            assert.ok(inputEstimate <= inputMost, `an estimate of ${inputEstimate}`)
            closest = Math.min(closest, (inputMost - around) / tokens)
          }
        }),
        { numRuns: CASES, seed },
      )
      recordProof('model-bounds', `the bound is never below what ${named} counts`, {
        inputs: CASES,
        protocols: ['openai', 'openai_responses', 'anthropic'],
        below: 0,
        closest_bound_without_share_of_request_as_multiple_of_count: Number(closest.toFixed(2)),
      })
    })
  }

  it('is never below what is counted afterwards, where an upstream reports nothing', () => {
    fc.assert(
      fc.property(conversation, (talk) => {
        for (const { inputMost, inputText } of [openaiAsk(talk), responsesAsk(talk), anthropicAsk(talk)]) {
          for (const tokensOf of Object.values(counters)) assert.ok(tokensOf(inputText()) <= inputMost)
        }
      }),
      { numRuns: CASES, seed },
    )
    recordProof('model-bounds', 'the bound is never below what is counted of the text afterwards', {
      inputs: CASES,
      counters: Object.keys(counters),
      below: 0,
    })
  })

  it('has room for the lines of tools that are indented', () => {
    const parameters = { enum: Array.from({ length: 5_000 }, (_, index) => index % 10) }
    const talk = { messages: [], tools: [{ name: 'f', description: '', parameters }] }
    const tokens = Math.max(...writtenForms(talk.tools).map((form) => countO200k(form)))
    const { inputMost } = openaiAsk({ ...talk, messages: [{ role: 'user', name: undefined, texts: [], images: [] }] })
    assert.ok(tokens <= inputMost, `${tokens} > ${inputMost}`)
  })

  it('is above what any normal form has in bytes', () => {
    const empty = openaiAsk({
      messages: [{ role: 'user', name: undefined, texts: [''], images: [] }],
      tools: [],
    }).inputMost
    fc.assert(
      fc.property(text, (one) => {
        const { inputMost } = openaiAsk({
          messages: [{ role: 'user', name: undefined, texts: [one], images: [] }],
          tools: [],
        })
        for (const form of ['NFC', 'NFKC'])
          assert.ok(inputMost - empty >= Buffer.byteLength(one.normalize(form)), JSON.stringify(one))
      }),
      { numRuns: CASES, seed },
    )
  })
})

/** From the beginning of a word to the end of one; of a script without spaces, from any character to any other. */
function slicesOf(texts: readonly string[], random: () => number): string[] {
  return Array.from({ length: SLICES }, () => {
    const whole = texts[Math.floor(random() * texts.length)] ?? ''
    const words = whole.includes(' ') ? whole.split(/(?<= )/) : [...whole]
    const length = Math.max(Math.ceil(words.length / 4), Math.ceil(random() * words.length))
    const from = Math.floor(random() * (words.length - length + 1))
    return words.slice(from, from + length).join('')
  })
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

/** The same slices in every run, so that the figures in the documentation can be had again. */
function repeatable(): () => number {
  let state = 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

describe('the estimate of a text', () => {
  const errors: Record<string, Record<string, number>> = {}
  for (const [script, texts] of Object.entries(TEXTS_BY_SCRIPT)) {
    it(`is near what a current tokenizer counts: ${script}`, () => {
      const slices = slicesOf(texts, repeatable())
      const figures: Record<string, number> = {}
      for (const [named, tokensOf] of Object.entries(TOKENIZERS)) {
        const relative = slices.map((one) => estimateTokens(one) / tokensOf(one) - 1)
        figures[`${named}_median_error_percent`] = Math.round(median(relative.map(Math.abs)) * 100)
        figures[`${named}_median_bias_percent`] = Math.round(median(relative) * 100)
      }
      errors[script] = figures
      assert.ok((figures.o200k_median_error_percent ?? 100) <= 25, JSON.stringify(figures))
      recordProof('model-bounds', 'the estimate, by script', { slices_of_each: SLICES, ...errors })
    })
  }

  it('is nothing for nothing, and takes time in proportion to the text', () => {
    assert.equal(estimateTokens(''), 0)
    const tookMs: number[] = []
    for (const one of ['a', ' ', '1', '.', 'é', '漢', 'A', '🎉', '\u0300']) {
      const startedMs = performance.now()
      assert.ok(estimateTokens(one.repeat(1_000_000)) > 0)
      tookMs.push(performance.now() - startedMs)
    }
    judge('model-bounds', 'the estimate of a million characters', { unit: 'ms', atMost: 10_000 }, tookMs)
  })
})

describe('parts of a request that are no text', () => {
  const DATA = 'AAAA'
  const sold = { needs: new Set(['input_audio', 'input_image'] as const) }
  const limits: ModelLimits = { ...LIMITS, sold, partTokens: { image: 256, audio: 900 } }

  it('are counted by their kind, as many as they may be or as they are as a rule', () => {
    const content = [
      { type: 'text', text: 'What is this?' },
      ...Array.from({ length: 3 }, () => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${DATA}` } })),
      { type: 'input_audio', input_audio: { data: DATA, format: 'wav' } },
      { type: 'file', file: { file_data: `data:application/pdf;base64,${DATA}` } },
    ]
    const body = { model: 'm', messages: [{ role: 'user', content }] }
    const asked = openai.ask({ body, rawBody: Buffer.from(JSON.stringify(body)), headers: {} }, limits)
    assert.deepEqual(asked.inputParts, { image: 3 * 256, audio: 900, other: 1_000 })
  })

  it('are none of a request that is text alone', () => {
    const body = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] }
    const asked = openai.ask({ body, rawBody: Buffer.from(JSON.stringify(body)), headers: {} }, limits)
    assert.equal(asked.inputParts, undefined)
  })
})

describe('a prompt beyond the context window', () => {
  const limits: ModelLimits = { ...LIMITS, contextWindow: 1_000 }
  const EMPTY: Prompt = {
    ...{ texts: [], structures: [], others: {}, parts: [], messages: 1, tools: 0, declaredTokens: 0 },
  }
  let looked = 0
  const looking = <Value>(value: Value): Value => {
    looked += 1
    return value
  }

  it('is looked at no further than that, however many texts it has', () => {
    looked = 0
    const texts = Array.from({ length: 20_000 }, () => 'ä'.repeat(100))
    const counted = new Proxy(texts, { get: (target, name) => looking(Reflect.get(target, name)) })
    const { inputMost, inputEstimate } = inputOf({ ...EMPTY, texts: counted }, limits)
    assert.deepEqual([inputMost, inputEstimate], [1_000, 1_000])
    assert.ok(looked < 200, `${looked}`)
  })

  it('and so are the structures, and what nobody knows', () => {
    const large = () =>
      Array.from({ length: 40_000 }, () => ({
        get text() {
          return looking('x'.repeat(100))
        },
      }))
    for (const prompt of [
      { ...EMPTY, structures: [large()] },
      { ...EMPTY, others: large() },
    ]) {
      looked = 0
      const { inputMost } = inputOf(prompt, limits)
      assert.equal(inputMost, 1_000)
      // A mebibyte of it is estimated.
      assert.ok(looked < 12_000, `${looked}`)
    }
  })
})
