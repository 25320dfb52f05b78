import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { seed } from '../../../harness/proof.ts'
import { type Nanos, nanos } from '../kernel/money.ts'
import { adviceOnMoney, type HeldOutput } from './money-advice.ts'

const held = (more: Partial<HeldOutput> = {}): HeldOutput => ({
  outputLimit: 1_000,
  choices: 1,
  isDefaultLimit: false,
  limitNames: ['max_tokens'],
  heldFor: (limit) => nanos(BigInt(500 + 3 * limit)),
  ...more,
})

const fittingOf = (of: HeldOutput, left: Nanos) => adviceOnMoney(of)?.(left)?.members.fitting_output_limit

describe('the output limit that would fit', () => {
  it('is the largest below the one that was asked for, whatever a token costs and whatever is left', () => {
    const some = fc.record({
      outputLimit: fc.integer({ min: 1, max: 200_000 }),
      input: fc.bigInt({ min: 0n, max: 10n ** 9n }),
      each: fc.bigInt({ min: 0n, max: 10n ** 6n }),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    fc.assert(
      fc.property(some, ({ outputLimit, input, each, share }) => {
        const heldFor = (limit: number) => nanos(input + each * BigInt(limit))
        // Whoever is refused has less than what is held.
        const left = nanos(BigInt(Math.floor(Number(heldFor(outputLimit)) * share)))
        if (left >= heldFor(outputLimit)) return true
        const fitting = fittingOf(held({ outputLimit, heldFor }), left)
        if (fitting === undefined) return outputLimit === 1 || heldFor(1) > left
        return fitting >= 1 && fitting < outputLimit && heldFor(fitting) <= left && heldFor(fitting + 1) > left
      }),
      { seed },
    )
  })

  it('is not told to whom the balance is not told, nor where output has no limit', () => {
    const advice = adviceOnMoney(held())?.(null)
    assert.deepEqual(advice, {
      words: '0.000003 USD of the hold is for the output limit of 1,000 tokens. Send a lower max_tokens.',
      members: {},
    })
    assert.equal(adviceOnMoney(held({ limitNames: [] })), undefined)
    assert.equal(adviceOnMoney(held({ outputLimit: 0 })), undefined)
  })
})
