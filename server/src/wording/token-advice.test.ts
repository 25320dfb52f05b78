import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limitsWithin } from '../catalogue/key-rates.ts'
import { TIERS } from '../catalogue/tiers.ts'
import { Fault } from '../kernel/fault.ts'
import { askOf } from '../limits/ask.ts'
import { adviceOn, type Reserve, requireWithinTokenLimits } from './token-advice.ts'

const RESERVE: Reserve = {
  inputEstimate: 20,
  outputLimit: 64_000,
  choices: 1,
  isDefaultLimit: false,
  limitNames: ['max_tokens'],
}
const advice = (more: Partial<Reserve>, limit = 60_000) => adviceOn({ ...RESERVE, ...more })(limit)

describe('the advice on a call that its limit can never admit', () => {
  it('says what it is made of, and the largest output limit that fits', () => {
    assert.equal(
      advice({}),
      'That is 20 input and 64,000 output tokens. Lower max_tokens to 59,980 at most, or ask for a higher limit.',
    )
    assert.match(advice({ choices: 3 }), /Lower max_tokens to 19,993 at most \(for each of 3 choices\)/)
  })

  it('names the default where the caller sent no limit', () => {
    assert.match(
      advice({ isDefaultLimit: true, outputLimit: 128_000 }),
      /no output limit, so the model's default of 128,000 counts\. Send max_tokens of 59,980 at most/,
    )
  })

  it('is to shorten the request where no output limit would help', () => {
    assert.match(advice({ inputEstimate: 60_000 }), /Shorten the request/)
    assert.equal(advice({ outputLimit: 0 }), 'Shorten the request, or ask for a higher limit.')
  })

  it('is to ask for fewer where the output has no limit to send', () => {
    assert.match(advice({ limitNames: [], choices: 10, outputLimit: 6_240 }), /Ask for fewer at once/)
  })

  it('is not to ask for fewer where there is one, or where one alone would not fit', () => {
    const pictures = { limitNames: [], outputLimit: 6_240 }
    assert.match(advice(pictures, 6_000), /output tokens\. Ask for a higher limit\.$/)
    assert.match(advice({ ...pictures, choices: 10 }, 6_000), /output tokens\. Ask for a higher limit\.$/)
    assert.match(advice({ ...pictures, inputEstimate: 60_000 }), /output tokens\. Shorten the request/)
    assert.match(advice({ ...pictures, inputEstimate: 60_000, choices: 2 }), /output tokens\. Shorten the request/)
  })
})

describe('a call that alone exceeds a limit of tokens', () => {
  const windows = [
    { group: 'all', seconds: 60, requestLimit: 60, tokenLimit: 60_000 },
    { group: 'images', seconds: 60, requestLimit: 30, tokenLimit: null },
  ]

  it('is refused for good with both numbers and the advice, and one that fits exactly is not', () => {
    requireWithinTokenLimits({ tokens: 60_000 }, windows, TIERS.free)
    requireWithinTokenLimits({ tokens: 60_001 }, windows.slice(1), TIERS.free)
    assert.throws(
      () =>
        requireWithinTokenLimits({ tokens: 60_001, tokenAdvice: (limit) => `Do with ${limit}.` }, windows, TIERS.free),
      (fault) => {
        assert.ok(fault instanceof Fault)
        assert.deepEqual(
          [fault.code, fault.retryable, fault.members],
          ['quota_exceeded', false, { needed_tokens: 60_001, limit_tokens: 60_000, limited_by: 'tier' }],
        )
        assert.match(fault.message, /up to 60,001 tokens; your limit is 60,000 per 60 seconds\. Do with 60000\.$/)
        return true
      },
    )
    assert.throws(() => requireWithinTokenLimits({ tokens: 60_001 }, windows, TIERS.free), /Shorten the request/)
  })

  it("is told where the limit is the key's own, and what its tier has", () => {
    const limits = limitsWithin(TIERS.free, { requestsPerMinute: null, tokensPerMinute: 8_000, concurrency: null })
    const { windows: own } = askOf(limits, ['tokens'])
    requireWithinTokenLimits({ tokens: 8_000 }, own, limits)
    assert.throws(
      () => requireWithinTokenLimits({ tokens: 9_000 }, own, limits),
      (fault) => {
        assert.ok(fault instanceof Fault)
        assert.deepEqual(fault.members, { needed_tokens: 9_000, limit_tokens: 8_000, limited_by: 'key' })
        assert.match(
          fault.message,
          /9,000 tokens; the limit of this key is 8,000 per 60 seconds \(its tier allows 60,000\)\./,
        )
        return true
      },
    )
  })
})
