import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { nanos, usd, ZERO } from '../kernel/money.ts'
import { concurrencyFor, KEYS_PER_TIER, TIERS, tierOf } from './tiers.ts'

describe('the tier', () => {
  it('is earned by what was paid in all: anything, and 500 USD', () => {
    for (const [paid, tier] of [
      ['0', 'free'],
      ['0.000000001', 'starter'],
      ['499.999999999', 'starter'],
      ['500', 'growth'],
      ['1000000', 'growth'],
    ] as const)
      assert.deepEqual(tierOf(usd(paid), null), { tier, limits: TIERS[tier] })
  })

  it('trap: an agreement lowers nothing: each limit is the better of what was agreed and what was earned', () => {
    const agreed = { requestsPerMinute: 4_000, tokensPerMinute: 100_000, concurrency: 1 }
    for (const [paid, limits] of [
      [ZERO, { ...agreed, concurrency: 5 }],
      [nanos(1n), { requestsPerMinute: 4_000, tokensPerMinute: 600_000, concurrency: 20 }],
      [usd('610'), { ...TIERS.growth, requestsPerMinute: 4_000 }],
    ] as const)
      assert.deepEqual(tierOf(paid, agreed), { tier: 'enterprise', limits })
    const little = { requestsPerMinute: 7, tokensPerMinute: 7, concurrency: 1 }
    for (const [paid, tier] of [
      ['0', 'free'],
      ['20', 'starter'],
      ['610', 'growth'],
    ] as const)
      assert.deepEqual(tierOf(usd(paid), little), { tier, limits: TIERS[tier] })
  })

  it('is the one whose limits are in force, also where they were agreed', () => {
    for (const tier of ['starter', 'growth'] as const) {
      const { concurrency: _, ...asked } = TIERS[tier]
      assert.equal(tierOf(ZERO, { ...asked, concurrency: concurrencyFor(asked) }).tier, tier)
    }
    assert.equal(concurrencyFor({ requestsPerMinute: 5_000, tokensPerMinute: 599_999 }), 5)
    assert.equal(concurrencyFor({ requestsPerMinute: 5_000, tokensPerMinute: 9_000_000 }), 50)
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
