import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { nanos, usd, ZERO } from '../kernel/money.ts'
import { KEYS_PER_TIER, TIERS, tierOf } from './tiers.ts'

describe('the tier', () => {
  it('is earned by what was paid in all: anything, and 500 USD', () => {
    assert.equal(tierOf(ZERO, null), 'free')
    assert.equal(tierOf(nanos(1n), null), 'starter')
    assert.equal(tierOf(usd('499.999999999'), null), 'starter')
    assert.equal(tierOf(usd('500'), null), 'growth')
    assert.equal(tierOf(usd('1000000'), null), 'growth')
  })

  it('is what was granted, where that is better than what was earned', () => {
    for (const paid of [ZERO, nanos(1n), usd('500')]) {
      assert.equal(tierOf(paid, 'growth'), 'growth')
      assert.equal(tierOf(paid, 'enterprise'), 'enterprise')
    }
  })

  it('gives more of everything than the one below it', () => {
    const { free, starter, growth } = TIERS
    for (const [less, more] of [
      [free, starter],
      [starter, growth],
    ] as const) {
      assert.ok(less.requestsPerMinute < more.requestsPerMinute)
      assert.ok(less.tokensPerMinute < more.tokensPerMinute)
      assert.ok(less.concurrency < more.concurrency)
    }
    const keys = [KEYS_PER_TIER.free, KEYS_PER_TIER.starter, KEYS_PER_TIER.growth, KEYS_PER_TIER.enterprise]
    assert.deepEqual(
      keys,
      keys.toSorted((a, b) => a - b),
    )
  })
})
