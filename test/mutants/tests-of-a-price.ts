import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chargeFor, discountFor } from './a-price.ts'

/** They are run on mutants, and by nobody else. */
describe('what units cost', () => {
  it('is nothing for up to three', () => assert.deepEqual([chargeFor(0), chargeFor(3)], [0, 0]))
  it('is one each for more, the first included', async () => assert.deepEqual([chargeFor(4), chargeFor(10)], [4, 10]))
  it('has some discount or none', () => assert.ok(discountFor(50) >= 0))
})
