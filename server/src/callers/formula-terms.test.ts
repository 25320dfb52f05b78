import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { seed } from '../../../harness/proof.ts'
import { termsOf } from './formula-terms.ts'

describe('the terms of a formula', () => {
  it('are the products that it adds up, exact', () => {
    assert.deepEqual(termsOf('19 input tokens × 0.0000005 USD + 1 output token × 0.000002 USD'), [
      { count: '19', unit: 'input tokens', price_usd: '0.0000005', cost_usd: '0.0000095' },
      { count: '1', unit: 'output token', price_usd: '0.000002', cost_usd: '0.000002' },
    ])
    const [third] = termsOf('2 calls × 1/3000000000 USD')
    assert.equal(third?.cost_usd, '2/3000000000')
  })

  it('are none of what adds nothing up, or reads otherwise', () => {
    for (const formula of [null, '0 tokens', '19 tokens', '1 call × USD', '1 call × 1/0 USD', '1 call × 0.1 USD + ?'])
      assert.deepEqual(termsOf(formula), [], String(formula))
  })

  it('say each count and each price as the formula does', () => {
    const count = fc.bigInt({ min: 0n, max: 10n ** 15n }).map(String)
    const price = fc.bigInt({ min: 0n, max: 10n ** 12n }).map((picos) => {
      const digits = picos.toString().padStart(13, '0')
      return `${digits.slice(0, -12)}.${digits.slice(-12)}`
    })
    fc.assert(
      fc.property(fc.array(fc.tuple(count, price), { minLength: 1, maxLength: 5 }), (terms) => {
        const formula = terms.map(([many, one]) => `${many} tokens × ${one} USD`).join(' + ')
        const read = termsOf(formula)
        assert.deepEqual(
          read.map(({ count: many, price_usd: one }) => [many, one]),
          terms,
        )
      }),
      { seed },
    )
  })
})
