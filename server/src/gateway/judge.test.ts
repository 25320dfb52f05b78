import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { NANOS_LIMIT, nanos, perMillion } from '../kernel/money.ts'
import { endingOf, type Held } from './judge.ts'

const KIND = { forgiven: false, failed: false }

function heldAt(usd: string): Held {
  const price = perMillion(usd)
  const rates = [{ unit: 'token', price, published: price, providerCost: price }]
  return { terms: { version: '1', rates }, mostCounts: [1_000n], most: nanos(1n) }
}

describe('what an upstream claims beyond the hold', () => {
  it('is our loss as it is claimed, and not cut to what is likely', () => {
    const { amount, usage } = endingOf(heldAt('2'), { counts: [10n ** 9n], inputTokens: 10 ** 9 }, KIND)
    assert.equal(amount, 10n ** 9n * 2_000n)
    assert.equal(usage.upstreamCost, amount)
  })

  it('is not believed in what is added up: the value and the tokens of reports', () => {
    const { usage } = endingOf(heldAt('2'), { counts: [10n ** 9n], inputTokens: 10 ** 9 }, KIND)
    assert.deepEqual([usage.value, usage.inputTokens], [100n * 1_000n * 2_000n, 1_000])
  })

  it('is cut at what the ledger can hold, so that the call ends', () => {
    const { amount } = endingOf(heldAt('1000000'), { counts: [10n ** 12n] }, KIND)
    assert.equal(amount, NANOS_LIMIT)
  })
})
