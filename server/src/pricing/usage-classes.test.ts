import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { oracle, priceOf, rounded, written } from '../../../harness/price-oracle.ts'
import { seed } from '../../../harness/proof.ts'
import { rational } from '../kernel/rational.ts'
import { anthropic } from '../protocols/anthropic.ts'
import { gemini } from '../protocols/gemini.ts'
import { openai } from '../protocols/openai.ts'
import { openaiResponses } from '../protocols/openai-responses.ts'
import type { Protocol } from '../protocols/protocol.ts'
import { sheetOf, type Used } from './price-sheet.ts'
import { costOf } from './terms.ts'

/** What an upstream has counted, each token once. */
const count = fc.integer({ min: 0, max: 1_500 })
const truth = fc.record({
  text: count,
  image: count,
  audio: count,
  read: count,
  readAudio: count,
  readImage: count,
  write5m: count,
  write1h: count,
  said: count,
  spoken: count,
  painted: count,
  searches: fc.nat(5),
  fetches: fc.nat(5),
  files: fc.nat(5),
  tier: fc.constantFrom('standard', 'flex', 'priority'),
})
type Truth = typeof truth extends fc.Arbitrary<infer One> ? One : never

/** How a vendor writes it, and what it is where the protocol does not say all of it. */
type Vendor = {
  readonly protocol: Protocol
  readonly write: (truth: Truth) => unknown
  readonly told: (truth: Truth) => Used
}

const openaiTruth = ({ text, image, audio, read, write5m, said, spoken, painted, tier }: Truth) => ({
  input: text + image + audio,
  cacheRead: read,
  cacheWrite: write5m,
  output: said + spoken + painted,
  parts: { input_image: image, input_audio: audio, output_audio: spoken, output_image: painted },
  tier,
})
const details = ({ image, audio, read, write5m, spoken, painted }: Truth) => ({
  input: { cached_tokens: read, cache_write_tokens: write5m, audio_tokens: audio, image_tokens: image },
  output: { reasoning_tokens: 0, audio_tokens: spoken, image_tokens: painted },
})
const tierIn = (tier: string) => (tier === 'standard' ? 'default' : tier)
const listed = (tokens: Readonly<Record<string, number>>) =>
  Object.entries(tokens).map(([modality, tokenCount]) => ({ modality, tokenCount }))

const VENDORS: Readonly<Record<string, Vendor>> = {
  anthropic: {
    protocol: anthropic,
    write: ({ text, read, write5m, write1h, said, searches, fetches, tier }) => ({
      content: [],
      usage: {
        input_tokens: text,
        output_tokens: said,
        cache_read_input_tokens: read,
        cache_creation_input_tokens: write5m + write1h,
        cache_creation: { ephemeral_5m_input_tokens: write5m, ephemeral_1h_input_tokens: write1h },
        server_tool_use: { web_search_requests: searches, web_fetch_requests: fetches },
        service_tier: tier,
      },
    }),
    told: ({ text, read, write5m, write1h, said, searches, fetches, tier }) => ({
      input: text,
      cacheRead: read,
      cacheWrite: write5m + write1h,
      output: said,
      parts: { cache_write_1h: write1h },
      calls: { web_search: searches, web_fetch: fetches },
      tier,
    }),
  },
  'chat completions': {
    protocol: openai,
    write: (one) => {
      const { input, cacheRead, cacheWrite, output } = openaiTruth(one)
      const prompt = input + cacheRead + cacheWrite
      return {
        choices: [],
        service_tier: tierIn(one.tier),
        usage: {
          prompt_tokens: prompt,
          completion_tokens: output,
          total_tokens: prompt + output,
          prompt_tokens_details: details(one).input,
          completion_tokens_details: details(one).output,
        },
      }
    },
    told: openaiTruth,
  },
  responses: {
    protocol: openaiResponses,
    write: (one) => {
      const { input, cacheRead, cacheWrite, output } = openaiTruth(one)
      const prompt = input + cacheRead + cacheWrite
      const call = (type: string, more = {}) => ({ type, status: 'completed', ...more })
      return {
        output: [
          ...Array.from({ length: one.searches }, () => call('web_search_call', { action: { type: 'search' } })),
          // What only looks at a page that was found is no search.
          ...Array.from({ length: one.fetches }, () => call('web_search_call', { action: { type: 'open_page' } })),
          ...Array.from({ length: one.files }, () => call('file_search_call')),
          call('message'),
        ],
        service_tier: tierIn(one.tier),
        usage: {
          input_tokens: prompt,
          output_tokens: output,
          total_tokens: prompt + output,
          input_tokens_details: details(one).input,
          output_tokens_details: details(one).output,
        },
      }
    },
    told: (one) => ({ ...openaiTruth(one), calls: { web_search: one.searches, file_search: one.files } }),
  },
  gemini: {
    protocol: gemini,
    write: ({ text, image, audio, read, readAudio, readImage, said, spoken, painted, tier }) => {
      const cached = read + readAudio + readImage
      const prompt = text + image + audio + cached
      const output = said + spoken + painted
      return {
        candidates: [],
        usageMetadata: {
          promptTokenCount: prompt,
          cachedContentTokenCount: cached,
          candidatesTokenCount: output,
          totalTokenCount: prompt + output,
          promptTokensDetails: listed({ TEXT: text + read, IMAGE: image + readImage, AUDIO: audio + readAudio }),
          cacheTokensDetails: listed({ TEXT: read, IMAGE: readImage, AUDIO: readAudio }),
          candidatesTokensDetails: listed({ TEXT: said, AUDIO: spoken, IMAGE: painted }),
          serviceTier: tier,
        },
      }
    },
    told: ({ text, image, audio, read, readAudio, readImage, said, spoken, painted, tier }) => ({
      input: text + image + audio,
      cacheRead: read + readAudio + readImage,
      cacheWrite: 0,
      output: said + spoken + painted,
      parts: {
        input_image: image,
        input_audio: audio,
        cache_read_audio: readAudio,
        output_audio: spoken,
        output_image: painted,
      },
      tier,
    }),
  },
}

describe('what a vendor reports in its own words', () => {
  for (const [name, { protocol, write, told }] of Object.entries(VENDORS))
    it(`costs what an independent reckoning says, to the nano-dollar: ${name}`, () => {
      fc.assert(
        fc.property(written, truth, (price, one) => {
          const { terms, countsOf } = sheetOf(priceOf(price), rational(1n))
          const { input = -1, output = -1, cacheRead = 0, cacheWrite = 0, ...rest } = protocol.usageOf(write(one))
          const cost = costOf(terms, countsOf({ input, output, cacheRead, cacheWrite, ...rest }))
          assert.equal(cost, rounded(oracle(price, told(one))))
        }),
        { seed, numRuns: 300 },
      )
    })

  it('takes what a cache had for text first, where a vendor does not say what it was', () => {
    const usage = {
      prompt_tokens: 100,
      completion_tokens: 1,
      total_tokens: 101,
      prompt_tokens_details: { cached_tokens: 60, audio_tokens: 50 },
    }
    const { input, cacheRead, parts } = openai.usageOf({ usage })
    assert.deepEqual([input, cacheRead, parts], [40, 60, { input_audio: 40, cache_read_audio: 10 }])
  })
})
