import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { inexactNumberIn, readExactly } from './exact-numbers.ts'

describe('a number of an agent', () => {
  for (const number of [
    '9007199254740993',
    '9007199254740993.0',
    '1e400',
    '1e-400',
    '90071992547.40993001',
    '1234567.89012345678',
    '0.12345678901234567890',
    '-12345678.9012345671',
  ])
    it(`is refused where it would be passed on as another one: ${number}`, () => {
      assert.match(
        inexactNumberIn(`{"a":[${number}]}`)?.message ?? '',
        new RegExp(`${number.slice(0, 9)}.*as a string`),
      )
    })

  for (const number of ['9007199254740991', '0.1', '1.5000000000000000000', '0.30000000000000004', '-0.0', '5e-324'])
    it(`is taken where it is the same: ${number}`, () => {
      assert.equal(inexactNumberIn(`[${number}]`), undefined)
    })

  for (const [number, words] of [
    ['10000000000000000', '"max_price_usd" must be at most 1000000000.'],
    ['1e400', '"max_price_usd" must be at most 1000000000.'],
    ['0.00999999999999999999', '"max_price_usd" must have at most 9 decimals; 0.00999999999999999999 has more.'],
  ] as const)
    it(`is told what is wrong with it where it is a cap: ${number}`, () => {
      assert.equal(inexactNumberIn(`{"max_price_usd":${number}}`)?.message, words)
    })

  it('is taken however a program writes it', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        if (Number.isInteger(value) && !Number.isSafeInteger(value)) return
        assert.equal(inexactNumberIn(JSON.stringify({ value })), undefined)
      }),
    )
  })

  it('is no matter within a text', () => {
    assert.equal(inexactNumberIn('{"a":"90071992547409931234"}'), undefined)
  })
})

describe('a number of an upstream', () => {
  it('is a text where it is beyond 2^53, and stays a number otherwise', () => {
    const read = readExactly('{"id":9007199254740993,"at":0.12345678901234567890}')
    assert.deepEqual(read?.json, { id: '9007199254740993', at: 0.12345678901234568 })
  })
})
