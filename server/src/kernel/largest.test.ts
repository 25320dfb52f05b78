import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { seed } from '../../../harness/proof.ts'
import { largestThat } from './largest.ts'

describe('the largest number that fits', () => {
  it('is the last below the first that does not, and the first where no other does', () => {
    fc.assert(
      fc.property(fc.nat(1_000), fc.nat(1_000), fc.nat(2_000), (from, more, limit) => {
        const below = from + more
        const expected = Math.max(from, Math.min(limit, below - 1))
        assert.equal(
          largestThat((number) => number <= limit, from, below),
          expected,
        )
      }),
      { seed },
    )
  })
})
