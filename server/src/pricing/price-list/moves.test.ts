import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { count, seed } from '../../../../harness/proof.ts'
import { decimal, rational } from '../../kernel/rational.ts'
import { type NewModelPrice, priceAfter } from '../set-model-price.ts'
import { heldCounts, heldPrices, whyHeld } from './moves.ts'

const CASES = count({ full: 20_000, reduced: 2_000 })

type Given = Omit<NewModelPrice, 'model'>
const price = (given: Given) => priceAfter(null, { model: 'maker/one', ...given })
const held = (before: Given | null, after: Given) => heldPrices(before && price(before), price(after))

describe('a move', () => {
  it('is held back above ten times, up and down, and not at ten times', () => {
    fc.assert(
      fc.property(fc.bigInt(1n, 10n ** 12n), fc.bigInt(1n, 10n ** 12n), (before, after) => {
        const isFar = after > 10n * before || before > 10n * after
        assert.equal(whyHeld(rational(before), rational(after)) !== undefined, isFar)
        assert.equal(whyHeld(rational(before, 7n), rational(after, 7n)) !== undefined, isFar)
      }),
      { numRuns: CASES, seed },
    )
    assert.equal(whyHeld(decimal('0.3'), decimal('3')), undefined)
    assert.equal(whyHeld(decimal('3'), decimal('0.3')), undefined)
    assert.equal(whyHeld(decimal('0.3'), decimal('3.000000000000000001')), 'by more than 10 times')
    assert.equal(whyHeld(decimal('3.000000000000000001'), decimal('0.3')), 'by more than 10 times')
  })

  it('to zero or from zero is held back, and from zero to zero is none', () => {
    assert.equal(whyHeld(decimal('0.000000000000000001'), decimal('0')), 'to zero')
    assert.equal(whyHeld(decimal('0.00'), decimal('0.000000000000000001')), 'from zero')
    assert.equal(whyHeld(decimal('0'), decimal('0.000')), undefined)
  })

  it('of a limit is held back too, and one that was not there or goes is not', () => {
    const change = (before: string | null, after: string | null) => ({
      member: 'output_most',
      before,
      after,
      factor: null,
    })
    assert.deepEqual(heldCounts([change('64000', '6399')]), ['output_most 64000 → 6399, by more than 10 times'])
    assert.deepEqual(heldCounts([change('64000', '6400'), change(null, '1'), change('1', null)]), [])
  })
})

describe('a price that moves', () => {
  const plain = { input: '3', output: '15' }

  it('is held back by each class of its own', () => {
    assert.deepEqual(held(plain, { input: '3.5', output: '12' }), [])
    assert.deepEqual(held(plain, { input: '3', output: '0' }), ['price.output 15 → 0, to zero'])
    assert.deepEqual(held({ input: '0', output: '15' }, plain).slice(0, 1), ['price.input 0 → 3, from zero'])
    assert.deepEqual(held(plain, { input: '3', output: '150.01' }), ['price.output 15 → 150.01, by more than 10 times'])
  })

  it('is compared as it is charged: a cache without a price of its own costs as input', () => {
    const cached = { ...plain, cacheRead: '0.25' }
    assert.deepEqual(held(cached, plain), ['price.cache_read 0.25 → 3, by more than 10 times'])
    assert.deepEqual(held(plain, cached), ['price.cache_read 3 → 0.25, by more than 10 times'])
    assert.deepEqual(held(plain, { ...plain, cacheRead: '0.3' }), [])
    assert.deepEqual(held(plain, { ...plain, cacheWrite: '0' }), ['price.cache_write 3 → 0, to zero'])
  })

  it('is compared in its parts, its steps and its tiers', () => {
    const rates = { cache_write_1h: '6' }
    assert.deepEqual(held(plain, { ...plain, classes: { rates } }), [])
    assert.deepEqual(held(plain, { ...plain, classes: { rates: { cache_write_1h: '0' } } }), [
      'price.cache_write_1h 3 → 0, to zero',
    ])
    const step = (input: string) => ({ above: [{ tokens: 200_000, rates: { input, output: '22.5' } }] })
    assert.deepEqual(held(plain, { ...plain, classes: step('6') }), [])
    assert.deepEqual(
      held(plain, { ...plain, classes: step('60') })[0],
      'price.above.200000.input 3 → 60, by more than 10 times',
    )
    // Without its step, long input costs what any does.
    assert.deepEqual(
      held({ ...plain, classes: step('30.1') }, plain)[0],
      'price.above.200000.input 30.1 → 3, by more than 10 times',
    )
    const flex = (times: string) => ({ ...plain, classes: { tiers: { flex: { times } } } })
    assert.deepEqual(held(plain, flex('0.5')), [])
    assert.deepEqual(held(flex('0.5'), flex('0.04'))[0], 'price.tiers.flex.input 1.5 → 0.12, by more than 10 times')
    assert.deepEqual(held(flex('0.5'), flex('0'))[0], 'price.tiers.flex.input 1.5 → 0, to zero')
    assert.deepEqual(held(plain, flex('0'))[0], 'price.tiers.flex.input none → 0, to zero')
    assert.deepEqual(held(flex('0.5'), plain), [], 'what is sold no more costs nobody anything')
  })

  it('is compared by tool, picture and second', () => {
    const search = (usd: string) => ({ ...plain, classes: { tools: { web_search: usd } } })
    assert.deepEqual(held(search('0.01'), search('0.2')), ['price.tools.web_search 0.01 → 0.2, by more than 10 times'])
    assert.deepEqual(held(plain, search('0.01')), [])
    assert.deepEqual(held(plain, search('0')), ['price.tools.web_search none → 0, to zero'])
    const images = (usd: string) => ({ images: { 'auto/auto': usd } })
    assert.deepEqual(held(images('0.04'), images('0')), ['price.images.auto/auto 0.04 → 0, to zero'])
    assert.deepEqual(held(images('0.04'), images('0.05')), [])
    assert.deepEqual(held({ videos: { '720P': '0.1' } }, { videos: { '720P': '0.001' } }), [
      'price.videos.720P 0.1 → 0.001, by more than 10 times',
    ])
  })

  it('is compared in what it costs us', () => {
    const cost = (providerInput: string) => ({ ...plain, providerInput, providerOutput: '9' })
    assert.deepEqual(held(cost('2'), cost('0'))[0], 'cost.input 2 → 0, to zero')
    assert.deepEqual(held(cost('2'), cost('3')), [])
    assert.deepEqual(held(plain, cost('0')), [])
  })

  it('is held back as a first price where everything in it costs nothing', () => {
    assert.deepEqual(held(null, plain), [])
    assert.deepEqual(held(null, { input: '0.1', output: '0' }), [], 'embeddings have no output')
    assert.deepEqual(held(null, { input: '0', output: '0.00' }), ['price: everything in it is free'])
    assert.deepEqual(held(null, { images: { 'auto/auto': '0' } }), ['price: everything in it is free'])
    assert.deepEqual(held(null, { images: { 'auto/auto': '0.04' } }), [])
  })

  it('is held back where the one that stands can not be read', () => {
    const broken = { ...price(plain), classes: { rates: { smell: '1' } } }
    assert.deepEqual(heldPrices(broken, price(plain)), ['price: the current one cannot be read'])
  })
})
