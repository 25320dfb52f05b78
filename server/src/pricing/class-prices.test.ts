import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { TokenClass } from '../catalogue/price-classes.ts'
import { rational } from '../kernel/rational.ts'
import { type ClassPricesText, classPricesForm, classPricesOf, needsMet } from './class-prices.ts'
import { priceIn } from './unit-prices.ts'

const rate = (usd: string, cost: string | null = null) => ({
  published: priceIn(usd),
  providerCost: cost === null ? null : priceIn(cost),
})
const PLAIN = {
  input: rate('3', '2'),
  output: rate('15', '10'),
  cache_read: rate('0.3'),
  cache_write: rate('3.75', '2.5'),
}
const OWN = ['input', 'output', 'cache_read', 'cache_write'] as const
const STEP = { input: '6', output: '22.5', cache_read: '0.6', cache_write: '7.5' }

const long = (rates: object) => Object.fromEntries(Object.keys(rates).map((name) => [name, '1.123456789012345678']))

const read = (text: ClassPricesText, costs: ClassPricesText = {}, own: readonly TokenClass[] = OWN) =>
  classPricesOf(PLAIN, own, classPricesForm.parse(text), classPricesForm.parse(costs))
const usdOf = (price: { numerator: bigint; denominator: bigint } | null | undefined) =>
  price && Number(price.numerator) / Number(price.denominator) / 1_000
const at = (prices: ReturnType<typeof read>, tier: string, step: number, name: TokenClass) =>
  prices.tiers.get(tier)?.[step]?.rates.get(name)

describe('prices beyond the plain classes', () => {
  it('has a column for each part with a price, in the order of the table of classes', () => {
    const { names } = read({ rates: { output_audio: '80', cache_write_1h: '6', input_audio: '40' } })
    assert.deepEqual(names, [...OWN, 'cache_write_1h', 'input_audio', 'output_audio'])
  })

  it('multiplies every price of every step where a tier is so many times the standard one', () => {
    const prices = read({
      rates: { cache_write_1h: '6' },
      above: [{ tokens: 200_000, rates: { ...STEP, cache_write_1h: '12' } }],
      tiers: { flex: { times: '0.5' } },
    })
    assert.equal(usdOf(at(prices, 'flex', 0, 'cache_write_1h')?.published), 3)
    assert.equal(usdOf(at(prices, 'flex', 1, 'output')?.published), 11.25)
  })

  it('takes what an upstream charges from the same place, and else from what it charges for the class', () => {
    const costs = { above: [{ tokens: 200_000, rates: { input: '5' } }], tiers: { flex: { times: '0.5' } } }
    const prices = read(
      {
        rates: { cache_write_1h: '6' },
        above: [{ tokens: 200_000, rates: { ...STEP, cache_write_1h: '12' } }],
        tiers: { flex: { times: '0.4' } },
      },
      costs,
    )
    assert.equal(usdOf(at(prices, 'standard', 0, 'cache_write_1h')?.providerCost), 2.5)
    assert.equal(usdOf(at(prices, 'standard', 1, 'input')?.providerCost), 5)
    assert.equal(usdOf(at(prices, 'standard', 1, 'cache_read')?.providerCost), 5)
    assert.equal(usdOf(at(prices, 'standard', 1, 'output')?.providerCost), 10)
    assert.equal(usdOf(at(prices, 'flex', 0, 'input')?.providerCost), 1)
  })

  it('lets a step leave out a cache that costs as input in the plain price too', () => {
    const prices = read({ above: [{ tokens: 10, rates: { input: '6', output: '7' } }] }, {}, ['input', 'output'])
    assert.equal(usdOf(at(prices, 'standard', 1, 'cache_read')?.published), 6)
  })

  for (const [what, text, words] of [
    [
      'a step without a class that the price has',
      { above: [{ tokens: 10, rates: { input: '1', output: '1' } }] },
      /above 10 needs a price of cache_read, cache_write/,
    ],
    [
      'a tier without one',
      { tiers: { priority: { rates: { input: '1' } } } },
      /tier priority .* needs a price of output/,
    ],
    [
      'a tier without the steps',
      { above: [{ tokens: 10, rates: STEP }], tiers: { priority: { rates: STEP } } },
      /the same steps/,
    ],
    [
      'more prices than terms can name',
      {
        above: [1, 2, 3, 4].map((tokens) => ({ tokens, rates: STEP })),
        tiers: { a: { times: '1' }, b: { times: '1' }, c: { times: '1' } },
      },
      /more than 64/,
    ],
    [
      'more digits than a quote has room for',
      {
        above: [1, 2].map((tokens) => ({ tokens, rates: long(STEP) })),
        tiers: { a: { times: '1.123456789012345678' }, b: { times: '1.123456789012345678' } },
      },
      /too many digits/,
    ],
  ] as const)
    it(`refuses ${what}`, () => {
      assert.throws(() => read(structuredClone(text) as ClassPricesText), words)
    })

  for (const [what, text] of [
    ['a negative price', { rates: { input_audio: '-1' } }],
    ['a class that nobody knows', { rates: { thoughts: '1' } }],
    ['a plain class beside the plain prices', { rates: { input: '1' } }],
    [
      'steps out of order',
      {
        above: [
          { tokens: 2, rates: STEP },
          { tokens: 1, rates: STEP },
        ],
      },
    ],
    ['a tier by the name of the standard one', { tiers: { standard: { times: '1' } } }],
    ['a tool that nobody knows', { tools: { mcp: '1' } }],
  ] as const)
    it(`does not read ${what}`, () => {
      assert.equal(classPricesForm.safeParse(text).success, false)
    })

  it('has no class in a step or a tier that the price itself has not: nobody would charge it', () => {
    const rates = { ...STEP, input_audio: '40' }
    assert.throws(() => read({ above: [{ tokens: 5, rates }] }), /above 5 has a price of input_audio, which the price/)
    assert.throws(() => read({ tiers: { flex: { rates } } }), /tier flex from 0 on has a price of input_audio/)
    read({ rates: { input_audio: '40' }, above: [{ tokens: 5, rates }], tiers: { flex: { times: '0.5' } } })
  })

  it('has no fraction that is too long to be read with a hold', () => {
    const nines = `${'9'.repeat(18)}.${'9'.repeat(18)}`
    const sold = (input_audio: string, times: string) => read({ rates: { input_audio }, tiers: { flex: { times } } })
    assert.throws(() => sold(nines, nines), /more than 60 digits/)
    sold(nines, '0.5')
    sold('40', nines)
  })

  it('has long input where the context window reaches beyond the last step', () => {
    const steps = [200, 1_000].map((tokens) => ({ tokens, rates: STEP }))
    const isSold = (contextWindow: number) => needsMet(read({ above: steps }), contextWindow).has('long_context')
    assert.deepEqual([200, 1_000, 1_001].map(isSold), [false, false, true])
    assert.equal(needsMet(read({}), 1_000_000).has('long_context'), false)
  })

  it('says what requests may ask for', () => {
    const met = needsMet(
      read({ rates: { input_audio: '40' }, tools: { web_search: '0.01' }, tiers: { flex: { times: '0.5' } } }),
      1_000_000,
    )
    assert.deepEqual([...met], ['input_audio', 'tool:web_search', 'tier:standard', 'tier:flex'])
    assert.equal(
      read({ tools: { web_search: '0.01' } }).tools.get('web_search')?.published.numerator,
      rational(1_000_000_000n).numerator,
    )
  })
})
