import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { catalogue } from '../catalogue/catalogue.ts'
import { type KeyRates, limitsWithin } from '../catalogue/key-rates.ts'
import { TIERS } from '../catalogue/tiers.ts'
import { askOf } from './ask.ts'

const NONE: KeyRates = { requestsPerMinute: null, tokensPerMinute: null, concurrency: null }
const operations = catalogue.operations.map(({ id, limits }) => ({ id, limits }))
const withOwn = (rates: Partial<KeyRates>) => limitsWithin(TIERS.free, { ...NONE, ...rates })

describe('what a call asks of its limits', () => {
  it('is the same object for every key without rates of its own', () => {
    for (const { limits } of operations)
      assert.equal(askOf(limitsWithin(TIERS.free, NONE), limits), askOf(TIERS.free, limits))
  })

  it("is one window of all the key's requests and tokens, with the lesser limits, beside those of endpoints", () => {
    const own = withOwn({ requestsPerMinute: 7, tokensPerMinute: 999_999_999 })
    for (const { id, limits } of operations) {
      const [all, ...others] = askOf(own, limits).windows
      assert.deepEqual(all, { group: 'all', seconds: 60, requestLimit: 7, tokenLimit: 60_000 }, id)
      assert.deepEqual(others, askOf(TIERS.free, limits).windows.slice(1), id)
      assert.deepEqual(askOf(own, limits).slots, askOf(TIERS.free, limits).slots, id)
    }
  })

  it('is a place of every call but a task where the key has a limit of calls at once, and of long calls alone where it has none', () => {
    for (const { id, limits } of operations) {
      const placesOf = (asked: Parameters<typeof askOf>[0]) =>
        askOf(asked, limits).slots.filter(({ scope }) => scope === 'concurrency')
      assert.deepEqual(
        placesOf(withOwn({ concurrency: 2 })).map(({ key, limit }) => ({ key, limit })),
        id === 'video_synthesis' ? [] : [{ key: 'all', limit: 2 }],
        id,
      )
      assert.equal(placesOf(TIERS.free).length, limits.includes('concurrency') ? 1 : 0, id)
    }
  })

  it('is never more places than the tier has', () => {
    for (const { id, limits } of operations)
      for (const { scope, limit } of askOf(withOwn({ concurrency: 1_000 }), limits).slots)
        if (scope === 'concurrency') assert.equal(limit, 5, id)
  })
})
