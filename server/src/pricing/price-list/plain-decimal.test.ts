import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { count, seed } from '../../../../harness/proof.ts'
import { decimal, decimalText, multiply, type Rational, rational } from '../../kernel/rational.ts'
import { plainDecimal } from './plain-decimal.ts'

const CASES = count({ full: 100_000, reduced: 5_000 })

function sameNumber(one: Rational, other: Rational): boolean {
  return one.numerator * other.denominator === other.numerator * one.denominator
}

/** A price for a million as a vendor writes it: whole cents, or finer. */
const price = fc
  .tuple(fc.nat(9_999), fc.nat(999_999_999))
  .map(([whole, rest]) => decimalText(decimal(`${whole}.${`${rest}`.padStart(9, '0')}`)))

/** The same number for one token, as programs write it: with or without an exponent, in one of its forms. */
const ways = fc.constantFrom(
  (digits: string, exponent: number) => `${digits}e${exponent}`,
  (digits: string, exponent: number) => `${digits}E-${`${-exponent}`.padStart(2, '0')}`,
  (digits: string, exponent: number) => `${digits[0]}.${digits.slice(1) || '0'}e${exponent + digits.length - 1}`,
  (digits: string, exponent: number) => `0.${digits.padStart(-exponent, '0')}`,
)

describe('a number as programs write it', () => {
  it('becomes the very price for a million that it was made from', () => {
    fc.assert(
      fc.property(price, ways, (perMillion, write) => {
        const [whole = '', fraction = ''] = perMillion.split('.')
        const written = write(`${whole}${fraction}`, -fraction.length - 6)
        assert.equal(plainDecimal(written, 6), perMillion, written)
      }),
      { numRuns: CASES, seed },
    )
  })

  it('is the same fraction, times a power of ten, whatever its digits are', () => {
    const digits = fc.stringMatching(/^[0-9]{1,9}(?:\.[0-9]{1,9})?$/)
    fc.assert(
      fc.property(digits, fc.integer({ min: -9, max: 9 }), fc.integer({ min: -3, max: 6 }), (text, exponent, times) => {
        const shift = exponent + times
        const power = 10n ** BigInt(Math.abs(shift))
        const expected = multiply(decimal(text), shift < 0 ? rational(1n, power) : rational(power))
        let plain: string
        try {
          plain = plainDecimal(`${text}e${exponent}`, times)
        } catch (error) {
          assert.ok(error instanceof RangeError)
          assert.ok(
            decimalText(expected)
              .split('.')
              .some((part) => part.length > 18),
            text,
          )
          return
        }
        assert.ok(sameNumber(decimal(plain), expected), `${text}e${exponent} is not ${plain}`)
        assert.match(plain, /^(?:0|[1-9]\d*)(?:\.\d*[1-9])?$/)
      }),
      { numRuns: CASES, seed },
    )
  })

  it('is not what a float makes of it', () => {
    assert.equal(plainDecimal('3.3e-06', 6), '3.3')
    assert.notEqual(String(3.3e-6 * 1_000_000), '3.3', 'or else the above shows nothing')
    assert.equal(plainDecimal('2.5e-06', 6), '2.5')
    assert.equal(plainDecimal('0.0', 6), '0')
    assert.equal(plainDecimal('3', 6), '3000000')
    assert.equal(plainDecimal('2.5', -3), '0.0025')
    assert.equal(plainDecimal('1.0000000000000002e-07', 6), '0.10000000000000002')
  })

  for (const text of ['', '-1e-06', 'NaN', 'Infinity', '1e', '0x10', '1_000', '1,5', ' 1', '1e-9999', '1e30', '1e-26'])
    it(`is refused where it is ${JSON.stringify(text)}`, () => {
      assert.throws(() => plainDecimal(text, 6), RangeError)
    })
})
