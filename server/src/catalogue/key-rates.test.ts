import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { count, seed } from '../../../harness/proof.ts'
import { type KeyRates, type LimitKind, limitsWithin, tierLimitAbove } from './key-rates.ts'
import { TIERS, type TierLimits } from './tiers.ts'

const CASES = count({ full: 100_000, reduced: 5_000 })
const KINDS: readonly LimitKind[] = ['requestsPerMinute', 'tokensPerMinute', 'concurrency']
const NONE: KeyRates = { requestsPerMinute: null, tokensPerMinute: null, concurrency: null }

const number = fc.oneof(fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 999_999_999 }))
const tier: fc.Arbitrary<TierLimits> = fc.record({
  requestsPerMinute: number,
  tokensPerMinute: number,
  concurrency: number,
})
const own = fc.option(number, { nil: null })
const key: fc.Arbitrary<KeyRates> = fc.record({ requestsPerMinute: own, tokensPerMinute: own, concurrency: own })

describe('what holds for a key', () => {
  it("is never above its tier's, never above its own, and is one of the two", () => {
    fc.assert(
      fc.property(tier, key, (ofTier, ofKey) => {
        const limits = limitsWithin(ofTier, ofKey)
        for (const kind of KINDS) {
          assert.ok(limits[kind] <= ofTier[kind])
          assert.ok(limits[kind] <= (ofKey[kind] ?? Number.POSITIVE_INFINITY))
          assert.ok(limits[kind] === ofTier[kind] || limits[kind] === ofKey[kind])
          // Whose it is: the key's where raising that would let more pass.
          const raised = limitsWithin(ofTier, { ...ofKey, [kind]: null })
          assert.equal(tierLimitAbove(limits, kind), raised[kind] > limits[kind] ? ofTier[kind] : undefined)
        }
      }),
      { numRuns: CASES, seed },
    )
  })

  it("without rates of its own is the tier's own object, so that nothing is worked out for each key", () => {
    for (const ofTier of Object.values(TIERS)) assert.equal(limitsWithin(ofTier, NONE), ofTier)
  })
})
