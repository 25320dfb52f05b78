import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { TOKENS_LIMIT, wholeNumber } from './fields.ts'

describe('a whole number that an operator writes', () => {
  it('is refused with the limit that applies to it', () => {
    assert.throws(() => wholeNumber('1000000000'), { message: 'must be a whole number from 1 to 999,999,999' })
    assert.throws(() => wholeNumber('1000000000001', TOKENS_LIMIT), {
      message: 'must be a whole number from 1 to 1,000,000,000,000',
    })
  })

  it('of tokens a minute may be a thousand million', () => {
    assert.equal(wholeNumber('1000000000', TOKENS_LIMIT), 1_000_000_000)
  })

  it('is nothing but digits, without a zero before them', () => {
    for (const text of ['0', '-1', '1.5', '1e3', '007', '', ' 5', '5 ', 'many'])
      assert.throws(() => wholeNumber(text), /must be a whole number/, JSON.stringify(text))
  })
})
