import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { adviceOn, type Reserve } from './token-advice.ts'

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
      'They are 20 of input and 64,000 of output. Lower max_tokens to 59,980 at most, or ask for a higher limit.',
    )
    assert.match(advice({ choices: 3 }), /Lower max_tokens to 19,993 at most \(for each of 3 choices\)/)
  })

  it('names the default where the caller sent no limit', () => {
    assert.match(
      advice({ isDefaultLimit: true, outputLimit: 128_000 }),
      /no output limit, so the model's default of 128,000 counts: send max_tokens of 59,980 at most/,
    )
  })

  it('is to shorten the request where no output limit would help', () => {
    assert.match(advice({ inputEstimate: 60_000 }), /Shorten the request/)
    assert.equal(advice({ outputLimit: 0 }), 'Shorten the request, or ask for a higher limit.')
  })

  it('is to ask for fewer where the output has no limit to send', () => {
    assert.match(advice({ limitNames: [], choices: 10, outputLimit: 6_240 }), /Ask for fewer at once/)
  })
})
