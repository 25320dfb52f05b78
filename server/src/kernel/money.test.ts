import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { count, recordProof, seed } from '../../../harness/proof.ts'
import {
  bound,
  charge,
  formatUsd,
  microsByBucket,
  NANOS_LIMIT,
  nanos,
  perMillion,
  plus,
  usd,
  wholeMicros,
} from './money.ts'
import { add, ceiling, decimal, floor, multiply, rational, roundHalfEven } from './rational.ts'

const CASES = count({ full: 100_000, reduced: 5_000 })

function property(title: string, arbitrary: fc.IProperty<unknown>): void {
  it(title, () => {
    fc.assert(arbitrary, { numRuns: CASES, seed })
    recordProof('money', title, { cases: CASES, counterexamples: 0 })
  })
}

const amount = fc.bigInt(-NANOS_LIMIT, NANOS_LIMIT).map(nanos)
const quantity = fc.bigInt(0n, 10n ** 12n)
const denominator = fc.bigInt(1n, 10n ** 12n)
const fraction = fc.tuple(fc.bigInt(-(10n ** 24n), 10n ** 24n), denominator).map(([n, d]) => rational(n, d))
/** Decimal text with up to six digits before and after the point, as a price list has them. */
const price = fc
  .tuple(fc.nat(999_999), fc.nat({ max: 6 }), fc.nat(999_999))
  .map(([whole, places, rest]) =>
    places === 0 ? `${whole}` : `${whole}.${`${rest}`.padStart(6, '0').slice(0, places)}`,
  )

describe('money', () => {
  property(
    'survives printing and parsing',
    fc.property(amount, (value) => {
      assert.equal(usd(formatUsd(value)), value)
    }),
  )

  property(
    'multiplies a per-million price exactly, as fractions of integers do',
    fc.property(price, quantity, (text, tokens) => {
      const [whole = '0', places = ''] = text.split('.')
      // The same figure by another road: scale the text to an integer of 10^-6 USD, and keep the fraction whole.
      const scaled = BigInt(whole + places.padEnd(6, '0'))
      const expected = rational(scaled * 1000n * tokens, 1_000_000n)
      const cost = multiply(perMillion(text), rational(tokens))
      assert.equal(cost.numerator * expected.denominator, expected.numerator * cost.denominator)
    }),
  )

  property(
    'rounds a charge to the nearest nano, and a tie to the even one',
    fc.property(fraction, (exact) => {
      const rounded = roundHalfEven(exact)
      const distance = 2n * (rounded * exact.denominator - exact.numerator)
      const magnitude = distance < 0n ? -distance : distance
      assert.ok(magnitude <= exact.denominator, 'no other integer is nearer')
      if (magnitude === exact.denominator) assert.equal(rounded % 2n, 0n)
    }),
  )

  property(
    'rounds exact halves to even, whatever their sign',
    fc.property(fc.bigInt(-(10n ** 18n), 10n ** 18n), denominator, (whole, scale) => {
      const rounded = roundHalfEven(rational((2n * whole + 1n) * scale, 2n * scale))
      assert.equal(rounded, whole % 2n === 0n ? whole : whole + 1n)
    }),
  )

  property(
    'never rounds a bound below what it bounds, nor a whole nano above it',
    fc.property(fc.tuple(fc.bigInt(0n, 10n ** 24n), fc.bigInt(10n ** 6n, 10n ** 12n)), ([n, d]) => {
      const exact = rational(n, d)
      const held = bound(exact)
      assert.ok(held * d >= n && (held - 1n) * d < n)
      assert.ok(charge(exact) <= held, 'a charge never exceeds its hold')
    }),
  )

  property(
    'covers every smaller quantity by the bound of a larger one',
    fc.property(price, fc.bigInt(0n, 10n ** 9n), fc.bigInt(0n, 10n ** 9n), (text, a, b) => {
      const cost = (tokens: bigint) => multiply(perMillion(text), rational(tokens))
      const [fewer, more] = a < b ? [a, b] : [b, a]
      assert.ok(charge(cost(fewer)) <= bound(cost(more)))
    }),
  )

  property(
    'splits into micros by bucket that add up to the floored total, for any split',
    fc.property(fc.array(fc.bigInt(0n, 10n ** 15n).map(nanos), { maxLength: 40 }), (amounts) => {
      const micros = microsByBucket(amounts)
      assert.equal(micros.length, amounts.length)
      assert.equal(
        micros.reduce((sum, one) => sum + one, 0n),
        wholeMicros(plus(...amounts)),
      )
      assert.ok(micros.every((one) => one >= 0n))
    }),
  )

  property(
    'keeps the first buckets as they are when the window grows at its end',
    fc.property(fc.array(fc.bigInt(0n, 10n ** 15n).map(nanos), { minLength: 1, maxLength: 40 }), (amounts) => {
      assert.deepEqual(microsByBucket(amounts.slice(0, -1)), microsByBucket(amounts).slice(0, -1))
    }),
  )

  it('prints nine places', () => {
    assert.equal(formatUsd(usd('0.00145')), '0.001450000')
    assert.equal(formatUsd(usd('-12.5')), '-12.500000000')
    assert.equal(formatUsd(nanos(-1n)), '-0.000000001')
  })

  it('prices a rerank of one token at 50 nanos', () => {
    assert.equal(charge(perMillion('0.050')), 50n)
  })

  const refused = [
    '',
    ' ',
    '1.',
    '.5',
    '+1',
    '1e3',
    '0x10',
    '1,5',
    '1_000',
    'NaN',
    'Infinity',
    '0.0000000001',
    '--1',
    '1.2.3',
    '٣',
    `${'9'.repeat(19)}`,
  ]
  for (const text of refused) {
    it(`refuses ${JSON.stringify(text)} as an amount`, () => {
      assert.throws(() => usd(text), RangeError)
    })
  }

  it('refuses an amount that a row could not hold', () => {
    assert.throws(() => usd('9223372036.854775808'), RangeError)
    assert.throws(() => plus(nanos(NANOS_LIMIT), nanos(1n)), RangeError)
    assert.equal(formatUsd(usd('9223372036.854775807')), '9223372036.854775807')
  })
})

describe('fractions', () => {
  property(
    'floor and ceiling enclose their fraction',
    fc.property(fraction, (exact) => {
      const [low, high] = [floor(exact), ceiling(exact)]
      assert.ok(low * exact.denominator <= exact.numerator && exact.numerator <= high * exact.denominator)
      assert.ok(high - low === (exact.numerator % exact.denominator === 0n ? 0n : 1n))
    }),
  )

  property(
    'add as integers over a common denominator do',
    fc.property(fraction, fraction, (a, b) => {
      const sum = add(a, b)
      assert.equal(
        sum.numerator * a.denominator * b.denominator,
        (a.numerator * b.denominator + b.numerator * a.denominator) * sum.denominator,
      )
    }),
  )

  it('keep the sign above the line, and refuse a denominator of zero', () => {
    assert.deepEqual(rational(1n, -2n), rational(-1n, 2n))
    assert.throws(() => rational(1n, 0n), RangeError)
    assert.deepEqual(decimal('-1.45'), rational(-145n, 100n))
  })
})
