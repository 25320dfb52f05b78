import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PLAIN_CLASSES } from '../catalogue/price-classes.ts'
import { rational } from '../kernel/rational.ts'
import type { ModelAsk, Reported } from '../protocols/protocol.ts'
import { createTokenCounter } from '../upstreams/tokens/count-tokens.ts'
import { byToken } from './by-token.ts'
import type { ModelPrice } from './models.ts'
import { costOf, mostFor } from './terms.ts'
import { priceIn } from './unit-prices.ts'

const rate = (usd: string) => ({ published: priceIn(usd), providerCost: null })
const priceOf = (input: string, cacheRead: string, cacheWrite: string): ModelPrice => ({
  version: '1',
  rates: { input: rate(input), output: rate('2'), cacheRead: rate(cacheRead), cacheWrite: rate(cacheWrite) },
  images: null,
  videos: null,
})

const ask: ModelAsk = {
  isStream: false,
  wantsUsage: false,
  choices: 2,
  outputLimit: 100,
  isDefaultLimit: false,
  unknownMembers: [],
  inputMost: 1_000,
  inputEstimate: 300,
  bodyFor: () => Buffer.alloc(0),
  inputText: () => 'x'.repeat(30),
}

const pricing = (price: ModelPrice) =>
  byToken(
    { price, ask, outputMost: 200, multiplier: rational(1n) },
    { counter: createTokenCounter(), tokenizer: 'bytes_3' },
  )

describe('the hold of a call', () => {
  for (const [dearest, input, cacheRead, cacheWrite, nanos] of [
    ['writing a cache', '0.5', '0.05', '0.625', 625n],
    ['input', '0.5', '0.05', '0.4', 500n],
    ['reading a cache', '0.5', '0.9', '0.6', 900n],
  ] as const)
    it(`is for all of the input at the dearest price that it can have: ${dearest}`, () => {
      const { terms, most } = pricing(priceOf(input, cacheRead, cacheWrite))
      assert.equal(mostFor(terms, most), 1_000n * nanos + 200n * 2_000n)
    })

  it('covers whatever class the upstream reports the input in', async () => {
    const { terms, most, ofReply } = pricing(priceOf('0.5', '0.05', '0.625'))
    const held = mostFor(terms, most)
    for (const name of ['input', 'cacheRead', 'cacheWrite'] as const) {
      const reported = { input: 0, output: 200, [name]: 1_000 }
      const used = await ofReply({ reported, text: '', form: 'answer', json: {}, hasMedia: true, raw: () => '' })
      assert.ok(used !== undefined && costOf(terms, used.counts) <= held, name)
    }
  })
})

describe('the tokens of a call', () => {
  const price = priceOf('0.5', '0.05', '0.625')
  const tokensOf = (more: Partial<ModelAsk>, outputMost = 200) =>
    byToken(
      { price, ask: { ...ask, ...more }, outputMost, multiplier: rational(1n) },
      { counter: createTokenCounter(), tokenizer: 'bytes_3' },
    ).tokens

  it('LIMIT-1 reserves all the output that was asked for, of every choice, and the input by estimate', () => {
    assert.equal(tokensOf({}), 300 + 2 * 100)
    assert.equal(tokensOf({ outputLimit: 60_000, choices: 3 }), 300 + 3 * 60_000)
  })

  it('reserves nothing for reasoning that an upstream counts apart, for which money is held', () => {
    assert.equal(tokensOf({}, 64_000), 500)
  })

  it('is one at least, so that nothing that counts tokens begins where none are left', () => {
    assert.equal(tokensOf({ inputEstimate: 0, outputLimit: 0 }), 1)
  })
})

describe('the cost of a whole answer without a report', () => {
  const { ofReply } = pricing(priceOf('0.5', '0.05', '0.625'))
  const outputOf = async (json: unknown) =>
    (await ofReply({ reported: { input: 7 }, text: '', form: 'answer', json, hasMedia: true, raw: () => '' }))
      ?.outputTokens

  it('counts the words that stand where no text is expected, and not a few strange ones', async () => {
    assert.equal(await outputOf({ id: 'i'.repeat(900), choices: [{ index: 0, text: 'x'.repeat(300) }] }), 100)
    assert.equal(
      await outputOf({ choices: [{ message: { role: 'assistant', content: '' }, note: 'x'.repeat(30) }] }),
      0,
    )
  })
})

describe('the cost of an answer that is no text', () => {
  const spoken = { ...ask, needs: new Set(['output_audio'] as const) }
  const { ofReply, most, nothing } = byToken(
    { price: priceOf('0.5', '0.05', '0.625'), ask: spoken, outputMost: 200, multiplier: rational(1n) },
    { counter: createTokenCounter(), tokenizer: 'bytes_3' },
  )
  const told = { text: 'as it was said', form: 'answer', json: {}, hasMedia: true, raw: () => '' } as const

  it('is what is reported, and else the hold: neither sound nor pictures can be counted', async () => {
    assert.deepEqual((await ofReply({ ...told, reported: { input: 7, output: 9 } }))?.counts, [7n, 9n, 0n, 0n])
    assert.deepEqual((await ofReply({ ...told, reported: {} }))?.counts, most)
    assert.equal(await ofReply({ ...told, text: '', form: 'nothing', reported: {} }), undefined)
    assert.deepEqual(nothing().counts, [0n, 0n, 0n, 0n])
  })

  it('is counted where it has neither sound nor pictures: a prompt that was blocked costs its input', async () => {
    const blocked = { promptFeedback: { blockReason: 'SAFETY' } }
    const silent = { ...told, hasMedia: false, reported: {} }
    const used = await ofReply({ ...silent, text: '', json: blocked })
    assert.deepEqual([used?.counts, used?.source], [[10n, 0n, 0n, 0n], 'counted'])
    assert.deepEqual((await ofReply(silent))?.counts, [10n, 5n, 0n, 0n])
    assert.deepEqual((await ofReply({ ...silent, text: '', form: 'unreadable' }))?.counts, most)
  })
})

describe('the cost of what was delivered', () => {
  const { ofDelivered } = pricing(priceOf('0.5', '0.05', '0.625'))

  it('is nothing where nothing came and nothing is owed, and the input where it is', async () => {
    assert.equal(await ofDelivered({ reported: { input: 7 }, text: '', isOwed: false, isWhole: false }), undefined)
    const reported = await ofDelivered({ reported: { input: 7, cacheRead: 2 }, text: '', isOwed: true, isWhole: false })
    assert.deepEqual(reported?.counts, [7n, 0n, 2n, 0n])
    const counted = await ofDelivered({ reported: {}, text: '', isOwed: true, isWhole: false })
    assert.deepEqual([counted?.counts, counted?.source], [[10n, 0n, 0n, 0n], 'counted'])
  })

  const GIVEN_UP = { isOwed: true, isWhole: false }

  it('is never less than what was delivered, where a report came before it', async () => {
    const text = 'x'.repeat(300)
    const countsOf = async (reported: Reported, isWhole = false) => {
      const used = await ofDelivered({ ...GIVEN_UP, reported, text, isWhole })
      return [used?.counts.slice(0, 2), used?.source]
    }
    assert.deepEqual(await countsOf({ input: 7, output: 0 }), [[7n, 100n], 'counted'])
    assert.deepEqual(await countsOf({ input: 7, output: 120 }), [[7n, 120n], 'provider'])
    assert.deepEqual(await countsOf({ input: 7, output: 90 }, true), [[7n, 90n], 'provider'])
    // One that was passed by says nothing of the whole either.
    assert.deepEqual(await countsOf({ input: 7, outputSoFar: 0 }, true), [[7n, 100n], 'counted'])
    assert.deepEqual(await countsOf({ input: 7, outputSoFar: 120 }, true), [[7n, 120n], 'counted'])
  })
})

describe('the input that nobody reports', () => {
  const classes = new Map([
    [
      'standard',
      [
        {
          above: 0,
          rates: new Map([
            ['input', rate('1')],
            ['output', rate('2')],
            ['cache_read', rate('1')],
            ['cache_write', rate('1')],
            ['input_audio', rate('10')],
            ['input_image', rate('3')],
            ['output_audio', rate('20')],
          ] as const),
        },
      ],
    ],
  ])
  const names = [...PLAIN_CLASSES, 'input_audio', 'input_image', 'output_audio'] as const
  const price: ModelPrice = {
    ...priceOf('1', '1', '1'),
    classes: { names, tiers: classes, tools: new Map(), toolCalls: 0, toolInput: 0 },
  }
  const seen: ModelAsk = {
    ...ask,
    inputMost: 5_000,
    partsMost: { image: 3_016, any: 1_032 },
    inputParts: { image: 3_000, audio: 400, other: 500 },
  }
  const priced = (more: Partial<ModelAsk> = {}) =>
    byToken(
      { price, ask: { ...seen, ...more }, outputMost: 200, multiplier: rational(1n) },
      { counter: createTokenCounter(), tokenizer: 'bytes_3' },
    )
  const countsOf = async (reported: Reported, more: Partial<ModelAsk> = {}) =>
    (await priced(more).ofDelivered({ reported, text: 'x'.repeat(9), isOwed: true, isWhole: false }))?.counts

  it('has pictures, sound and files too, each in its class', async () => {
    assert.deepEqual(await countsOf({}), [510n, 3n, 0n, 0n, 400n, 3_000n, 0n])
    assert.deepEqual((await priced().ofNothing({})).counts, [510n, 0n, 0n, 0n, 400n, 3_000n, 0n])
    // What was reported is the upstream's word.
    assert.deepEqual(await countsOf({ input: 7 }), [7n, 3n, 0n, 0n, 0n, 0n, 0n])
  })

  it('is read once more for each call of a tool that is known, and never beyond what is held', async () => {
    const rounds = { inputMost: 20_000, partsMost: { image: 6_032, any: 2_064 } }
    assert.deepEqual(await countsOf({ calls: { web_search: 1 } }, rounds), [1_020n, 3n, 0n, 0n, 800n, 6_000n, 0n])
    for (const calls of [{}, { web_search: 1 }, { web_search: 3, web_fetch: 40 }]) {
      const { terms, most } = priced()
      const counts = await countsOf({ calls })
      assert.ok(counts !== undefined && costOf(terms, counts) <= mostFor(terms, most))
    }
  })

  it('and sound that came costs its length as sound, within what is held', async () => {
    const spoken = { needs: new Set(['output_audio'] as const) }
    assert.deepEqual(await countsOf({ input: 7, soundTokens: 50 }, spoken), [7n, 3n, 0n, 0n, 0n, 0n, 50n])
    assert.deepEqual(await countsOf({ input: 7, soundTokens: 9_000 }, spoken), [7n, 3n, 0n, 0n, 0n, 0n, 197n])
    const heard = await priced(spoken).ofDelivered({
      ...{ reported: { input: 7, soundTokens: 50 }, text: '', isOwed: false, isWhole: false },
    })
    assert.deepEqual(heard?.counts, [7n, 0n, 0n, 0n, 0n, 0n, 50n])
  })
})
