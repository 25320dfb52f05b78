import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { seed } from '../../../harness/proof.ts'
import { Fault } from '../kernel/fault.ts'
import { NANOS_LIMIT, type UnitPrice } from '../kernel/money.ts'
import { add, multiply, type Rational, rational } from '../kernel/rational.ts'
import {
  costOf,
  exactCost,
  FRACTION_DIGITS,
  fraction,
  listValueOf,
  mostFor,
  OWN_VERSION,
  type Terms,
  termsAsText,
  termsInText,
  upstreamCostOf,
  versionAt,
} from './terms.ts'

type Row = { readonly price: UnitPrice; readonly published?: UnitPrice; readonly providerCost?: UnitPrice | null }

const termsOf = (...rows: readonly Row[]): Terms => ({
  version: '3',
  rates: rows.map(({ price, published = price, providerCost = null }, at) => ({
    unit: `unit ${at}`,
    price,
    published,
    providerCost,
  })),
})

const whole = (numerator: bigint) => rational(numerator)
const isSame = (a: Rational, b: Rational) => a.numerator * b.denominator === b.numerator * a.denominator

const price = fc
  .tuple(fc.bigInt({ min: 0n, max: 10n ** 9n }), fc.bigInt({ min: 1n, max: 10n ** 9n }))
  .map(([numerator, denominator]) => rational(numerator, denominator))
const count = fc.bigInt({ min: 0n, max: 10n ** 8n })
const rows = fc.array(fc.record({ price, published: price, providerCost: fc.option(price), count }), {
  minLength: 1,
  maxLength: 6,
})
const RUNS = { seed, numRuns: 100 }

describe('what so many units cost', () => {
  it('is the sum of each count at the price of its unit, exactly, whatever the fractions', () => {
    fc.assert(
      fc.property(rows, (given) => {
        const oneByOne = given.reduce((sum, row) => add(sum, multiply(row.price, whole(row.count))), whole(0n))
        assert.ok(
          isSame(
            exactCost(
              termsOf(...given),
              given.map((row) => row.count),
            ),
            oneByOne,
          ),
        )
      }),
      RUNS,
    )
  })

  it('is rounded once, half to even, whatever it is the sum of', () => {
    const halves = termsOf({ price: rational(1n, 2n) }, { price: rational(1n, 2n) })
    for (const [counts, cost] of [
      [[1n, 0n], 0n],
      [[1n, 1n], 1n],
      [[3n, 0n], 2n],
      [[2n, 3n], 2n],
    ] as const)
      assert.equal(costOf(halves, counts), cost)
    const thirds = termsOf({ price: rational(1n, 3n) }, { price: rational(1n, 6n) })
    assert.equal(costOf(thirds, [1n, 1n]), 0n, 'a half, made of a third and a sixth')
    assert.equal(costOf(thirds, [1n, 2n]), 1n)
  })

  it('is nothing for units that nobody has counted', () => {
    assert.equal(costOf(termsOf({ price: whole(5n) }, { price: whole(7n) }), [2n]), 10n)
    assert.equal(costOf(termsOf(), []), 0n)
  })

  it('has three prices: what is charged, what is published, and what we pay ourselves', () => {
    const terms = termsOf(
      { price: whole(3n), published: whole(5n), providerCost: whole(2n) },
      { price: whole(30n), published: whole(50n) },
    )
    assert.equal(costOf(terms, [1n, 1n]), 33n)
    assert.equal(listValueOf(terms, [1n, 1n]), 55n)
    assert.equal(upstreamCostOf(terms, [1n, 1n]), 2n, 'what we pay is not known of the second')
  })

  it('is the same again for the same terms, and another for others', () => {
    const [cheap, dear] = [termsOf({ price: whole(1n) }), termsOf({ price: whole(2n) })]
    assert.deepEqual(
      [cheap, dear, cheap, dear].map((terms) => costOf(terms, [10n])),
      [10n, 20n, 10n, 20n],
    )
  })
})

describe('what is held for so many units', () => {
  it('is rounded up, and never below what fewer of them are charged', () => {
    assert.equal(mostFor(termsOf({ price: rational(1n, 3n) }), [1n]), 1n)
    fc.assert(
      fc.property(rows, fc.nat(1_000), (given, share) => {
        const terms = termsOf(...given)
        const counts = given.map((row) => row.count)
        const fewer = counts.map((each) => (each * BigInt(share)) / 1_000n)
        assert.ok(costOf(terms, fewer) <= mostFor(terms, counts))
      }),
      RUNS,
    )
  })

  it('is no more than the ledger can hold, of any of the three prices', () => {
    const [most, beyond] = [whole(NANOS_LIMIT), whole(NANOS_LIMIT + 1n)]
    const fine = { price: most, published: most, providerCost: most }
    assert.equal(mostFor(termsOf(fine), [1n]), NANOS_LIMIT)
    for (const changed of ['price', 'published', 'providerCost'])
      assert.throws(
        () => mostFor(termsOf({ ...fine, [changed]: beyond }), [1n]),
        (fault) =>
          fault instanceof Fault && fault.code === 'invalid_billing_configuration' && fault.cause instanceof RangeError,
      )
  })
})

describe('the version of a price that is paid as a multiple', () => {
  for (const [times, version] of [
    [rational(1n), '7'],
    [rational(4n, 4n), '7'],
    [rational(0n), '7'],
    [rational(0n, 5n), '7'],
    [rational(2n), OWN_VERSION],
    [rational(1n, 2n), OWN_VERSION],
  ] as const)
    it(`is ${version} at ${fraction(times)} times`, () => assert.equal(versionAt('7', times), version))

  it('is called the account’s where the price is', () => assert.equal(OWN_VERSION, 'account'))
})

describe('terms that are kept with a hold', () => {
  it('are read as they were written, with what is held for', () => {
    fc.assert(
      fc.property(rows, fc.string(), (given, version) => {
        const terms = { ...termsOf(...given), version }
        const counts = given.map((row) => row.count)
        assert.deepEqual(termsInText(termsAsText(terms, counts)), { terms, most: counts })
      }),
      RUNS,
    )
  })

  it('are text that a release before and after this one can read', () => {
    const terms = termsOf(
      { price: rational(1n, 2n), published: whole(3n), providerCost: whole(4n) },
      { price: whole(5n) },
    )
    assert.deepEqual(JSON.parse(termsAsText(terms, [6n])), {
      version: '3',
      rates: [
        { unit: 'unit 0', price: '1/2', published: '3/1', cost: '4/1', most: '6' },
        { unit: 'unit 1', price: '5/1', published: '5/1', most: '0' },
      ],
    })
  })

  const textWith = (changes: Readonly<Record<string, unknown>>) =>
    JSON.stringify({ version: '1', rates: [{ unit: 'u', price: '1/1', published: '1/1', most: '1', ...changes }] })

  it('have fractions of as many digits as anybody writes, and no others', () => {
    const longest = '9'.repeat(FRACTION_DIGITS)
    const [rate] = termsInText(textWith({ price: `${longest}/${longest}` })).terms.rates
    assert.deepEqual(rate?.price, rational(BigInt(longest), BigInt(longest)))
    for (const wrong of [
      `${longest}9/1`,
      `1/${longest}99`,
      ...['1/0', '1/01', '1/', '/1', '1', '-1/2', '1/2/3', ' 1/2', '1/2 ', '0x1/2', ''],
    ])
      assert.throws(() => termsInText(textWith({ price: wrong })), Error, wrong)
  })

  it('may have no price of our own, as null or not at all', () => {
    for (const text of [textWith({}), textWith({ cost: null })])
      assert.equal(termsInText(text).terms.rates[0]?.providerCost, null)
  })

  it('are refused where they are nothing of the kind', () => {
    for (const changes of [{ most: 'many' }, { most: 1 }, { unit: 1 }, { published: undefined }])
      assert.throws(() => termsInText(textWith(changes)))
    assert.throws(() => termsInText('{"version":"1"}'))
    assert.throws(() => termsInText('{"version":1,"rates":[]}'))
  })
})
