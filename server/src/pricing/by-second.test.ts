import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { seed } from '../../../harness/proof.ts'
import { Fault } from '../kernel/fault.ts'
import { rational } from '../kernel/rational.ts'
import { videoCounts, videoPricingOf } from './by-second.ts'
import type { ModelPrice } from './models.ts'
import { costOf, mostFor, termsAsText, termsInText, upstreamCostOf } from './terms.ts'
import { videoPriceIn } from './unit-prices.ts'

const rate = (usd: string, cost: string | null = null) => ({
  published: videoPriceIn(usd),
  providerCost: cost === null ? null : videoPriceIn(cost),
})
const NOTHING = { published: rational(0n), providerCost: null }
const PRICE: ModelPrice = {
  version: '3',
  rates: { input: NOTHING, output: NOTHING, cacheRead: NOTHING, cacheWrite: NOTHING },
  images: null,
  // In no order.
  videos: new Map([
    ['1080P', rate('0.15')],
    ['480P', rate('0.05', '0.02')],
    ['720P', rate('0.10')],
  ]),
}
const ASK = { secondsMost: 5, secondsUsual: 5, videos: 1, resolution: undefined, pixels: undefined }
const ONE = rational(1n)
const priced = (ask: Partial<typeof ASK> | Record<string, unknown>, multiplier = ONE) => {
  const { terms, most } = videoPricingOf({ price: PRICE, ask: { ...ASK, ...ask }, multiplier })
  return { terms, most, held: mostFor(terms, most) }
}

describe('what a video is expected to cost', () => {
  const costs = (ask: Record<string, unknown>, price = PRICE) => {
    const { terms, most, expected, assumption } = videoPricingOf({ price, ask: { ...ASK, ...ask }, multiplier: ONE })
    return { most: mostFor(terms, most), expected: costOf(terms, expected()), assumption: assumption?.() }
  }

  it('is its usual length in 720P where the request names neither, and the quote says so', () => {
    assert.deepEqual(costs({ secondsMost: 15 }), {
      most: 2_250_000_000n,
      expected: 500_000_000n,
      assumption:
        'Assumed: 5 seconds, as "parameters.duration" is not given; 720P, as "parameters.resolution" is not given.',
    })
    assert.equal(costs({ secondsMost: 8, secondsUsual: 8, resolution: '480P' }).assumption, 'Assumed: 8 seconds; 480P.')
  })

  it('is in the resolution in the middle where 720P has no price', () => {
    const videos = new Map([...(PRICE.videos ?? [])].filter(([name]) => name !== '720P'))
    assert.equal(costs({}, { ...PRICE, videos }).expected, 250_000_000n)
  })

  it('is never above what is held', () => {
    const some = fc.record({
      secondsMost: fc.integer({ min: 5, max: 60 }),
      secondsUsual: fc.integer({ min: 1, max: 5 }),
      videos: fc.integer({ min: 1, max: 4 }),
      resolution: fc.constantFrom(undefined, '480P', '720P', '1080P'),
    })
    fc.assert(
      fc.property(some, (ask) => {
        const { most, expected } = costs(ask)
        return expected <= most
      }),
      { seed },
    )
  })
})

describe('what is held for a video', () => {
  it('is all of its seconds at the price of its resolution, or at the dearest', () => {
    assert.equal(priced({ resolution: '720P' }).held, 500_000_000n)
    assert.equal(priced({ resolution: '480P', videos: 2 }).held, 500_000_000n)
    assert.equal(priced({}).held, 750_000_000n)
    assert.equal(priced({ resolution: '720P' }, rational(1n, 3n)).held, 166_666_667n)
  })

  it('is by the smallest resolution with as many pixels', () => {
    for (const [pixels, held] of [
      [832 * 480, 250_000_000n],
      [960 * 960, 500_000_000n],
      [1_280 * 720, 500_000_000n],
      [1_280 * 720 + 1, 750_000_000n],
      [1_440 * 1_440, 750_000_000n],
    ] as const)
      assert.equal(priced({ pixels }).held, held)
  })

  it('is refused where a resolution has no price, or a model has none at all', () => {
    assert.throws(() => priced({ resolution: '240P' }), Fault)
    assert.throws(() => priced({ pixels: 4_096 * 4_096 }), Fault)
    const price = { ...PRICE, videos: null }
    assert.throws(
      () => videoPricingOf({ price, ask: ASK, multiplier: ONE }),
      (error) => error instanceof Fault && error.code === 'invalid_billing_configuration',
    )
  })
})

describe('what a video costs', () => {
  it('is what was reported, at the price of the resolution that was made', () => {
    const { terms, most } = priced({ resolution: '720P' })
    const cost = (seconds: number, resolution?: number, videos = 1) =>
      costOf(terms, videoCounts(terms, most, { seconds, videos, resolution }) ?? [])
    assert.equal(cost(5, 720), 500_000_000n)
    assert.equal(cost(5, 480), 250_000_000n)
    assert.equal(cost(4.5, 720), 450_000_000n)
    assert.equal(cost(0, 720), 0n)
    assert.equal(cost(2, 720, 2), 400_000_000n)
    // Not said, or of no price: as it was held for.
    assert.equal(cost(5), 500_000_000n)
    assert.equal(cost(5, 999), 500_000_000n)
    assert.equal(videoCounts(terms, most, { seconds: undefined, videos: 1, resolution: 720 }), undefined)
  })

  it('is read from what was kept with the hold, to the last digit', () => {
    fc.assert(
      fc.property(
        fc.record({ n: fc.bigInt({ min: 1n, max: 10n ** 9n }), d: fc.bigInt({ min: 1n, max: 10n ** 9n }) }),
        fc.integer({ min: 0, max: 15_000 }),
        fc.constantFrom(480, 720, 1_080, undefined),
        ({ n, d }, ms, resolution) => {
          const { terms, most } = priced({}, rational(n, d))
          const read = termsInText(termsAsText(terms, most))
          assert.deepEqual(read.most, most)
          const usage = { seconds: ms / 1_000, videos: 1, resolution }
          const counts = videoCounts(terms, most, usage) ?? []
          assert.deepEqual(videoCounts(read.terms, read.most, usage), counts)
          assert.equal(costOf(read.terms, counts), costOf(terms, counts))
          assert.equal(upstreamCostOf(read.terms, counts), upstreamCostOf(terms, counts))
        },
      ),
      { seed },
    )
  })
})
