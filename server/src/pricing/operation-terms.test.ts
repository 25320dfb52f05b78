import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Fault } from '../kernel/fault.ts'
import { type Rational, rational } from '../kernel/rational.ts'
import {
  accountPricesIn,
  modelOf,
  OWN_MODEL_LIMIT,
  operationTerms,
  ownModel,
  setPriceIn,
  timesOf,
} from './operation-terms.ts'

/** As PostgreSQL writes decimals of USD, in nano-dollars. */
const USD: Readonly<Record<string, bigint>> = { '0.002': 2_000_000n, '0.003': 3_000_000n, '1': 1_000_000_000n, '0': 0n }
const isEqual = (price: Rational | null | undefined, amount: bigint | undefined) =>
  price !== null && price !== undefined && amount !== undefined && price.numerator === amount * price.denominator

const published = rational(1_000_000n)
const operation = { id: 'search', price: { unit: 'call', unitPrice: published } }
const caller = { priceMultiplier: rational(3n, 2n) }
const set = setPriceIn({ version: 4, unit_price: '0.002', provider_cost: '0.003' })
const own = accountPricesIn([
  { operation: 'search', unit_price: '0.003' },
  { operation: 'model:big', unit_price: '0.5' },
])
const isUnreadable = (fault: unknown) =>
  fault instanceof Fault && fault.code === 'invalid_billing_configuration' && fault.cause instanceof Error

describe('the price of an operation', () => {
  const only = (...[of, who, known]: Parameters<typeof operationTerms>) => {
    const { version, rates } = operationTerms(of, who, known)
    const [rate, ...others] = rates
    assert.ok(rate !== undefined && others.length === 0)
    return { version, ...rate }
  }

  it('is the published one where nobody has set another', () => {
    assert.deepEqual(only(operation, caller, { set: undefined, own: undefined }), {
      version: '0',
      unit: 'call',
      price: published,
      published,
      providerCost: null,
    })
  })

  it("is the operator's where there is one, which is then the published one too", () => {
    const rate = only(operation, caller, { set, own: new Map() })
    assert.equal(rate.version, '4')
    assert.ok(isEqual(rate.price, USD['0.002']) && isEqual(rate.published, USD['0.002']))
    assert.ok(isEqual(rate.providerCost, USD['0.003']))
  })

  it("is the account's own before both, and is reported beside what others pay", () => {
    const rate = only(operation, caller, { set, own })
    assert.equal(rate.version, 'account')
    assert.ok(isEqual(rate.price, USD['0.003']) && isEqual(rate.published, USD['0.002']))
  })

  it('is scaled by the plan of the caller where the operation says so, but never what was agreed', () => {
    const scaled = { ...operation, isScaledByCustomerPlan: true } as const
    const plain = only(scaled, caller, { set: undefined, own: undefined })
    assert.ok(isEqual(plain.price, 1_500_000n) && isEqual(plain.published, 1_000_000n))
    assert.equal(plain.version, '0')
    assert.ok(isEqual(only(scaled, caller, { set, own: undefined }).price, USD['0.003']))
    const half = { priceMultiplier: rational(1n, 2n) }
    assert.ok(isEqual(only(scaled, half, { set, own }).price, USD['0.003']))
  })

  it('may be nothing, by agreement or by the operator', () => {
    const free = accountPricesIn([{ operation: 'search', unit_price: '0' }])
    assert.ok(isEqual(only(operation, caller, { set, own: free }).price, 0n))
    const none = setPriceIn({ version: 5, unit_price: '0', provider_cost: null })
    const rate = only(operation, caller, { set: none, own: undefined })
    assert.deepEqual([isEqual(rate.price, 0n), rate.providerCost], [true, null])
  })

  it('is none where one of them can not be read: no other stands in for it', () => {
    const broken = accountPricesIn([{ operation: 'search', unit_price: 'NaN' }])
    const NaNs = setPriceIn({ version: 4, unit_price: 'NaN', provider_cost: null })
    for (const known of [
      { set, own: broken },
      { set: NaNs, own },
      { set: NaNs, own: undefined },
    ])
      assert.throws(() => operationTerms(operation, caller, known), isUnreadable)
    assert.ok(operationTerms({ ...operation, id: 'other' }, caller, { set, own: broken }), 'it spoils no other')
  })
})

describe('what a row says that an operator has set', () => {
  for (const [what, row] of [
    ['NaN', { version: 1, unit_price: 'NaN', provider_cost: null }],
    ['less than nothing', { version: 1, unit_price: '-0.1', provider_cost: null }],
    ['a cost that is none', { version: 1, unit_price: '1', provider_cost: 'Infinity' }],
    ['half a version', { version: 1.5, unit_price: '1', provider_cost: null }],
    ['a number in place of a text', { version: 1, unit_price: 1, provider_cost: null }],
  ] as const)
    it(`can not be read: ${what}`, () => assert.equal(setPriceIn(row), 'unreadable'))
})

describe('how many times the price of a model an account pays', () => {
  it('is once, unless something else was agreed for that model', () => {
    assert.ok(isEqual(timesOf(undefined, 'big'), 1n))
    assert.ok(isEqual(timesOf(own, 'small'), 1n))
    assert.deepEqual(timesOf(own, 'big'), rational(5n, 10n))
    assert.ok(isEqual(timesOf(own, 'search'), 1n), 'an operation of that name is no model')
  })

  it('is not USD: twice the price is 2, and no thousand millions', () => {
    assert.ok(isEqual(timesOf(accountPricesIn([{ operation: 'model:big', unit_price: '2' }]), 'big'), 2n))
  })

  it('is nothing that anybody pays where it can not be read', () => {
    for (const text of ['NaN', '-1', null])
      assert.throws(() => timesOf(accountPricesIn([{ operation: 'model:big', unit_price: text }]), 'big'), isUnreadable)
  })
})

describe('the name of an account’s own price of a model', () => {
  it('tells it from one of an operation, and fits where it is kept', () => {
    assert.equal(modelOf(ownModel('big')), 'big')
    assert.equal(modelOf('search'), undefined)
    assert.equal(modelOf('a model:big'), undefined)
    assert.equal(ownModel('m'.repeat(OWN_MODEL_LIMIT)).length, 64)
  })

  it('is in rows, or they are none', () => assert.throws(() => accountPricesIn([{ unit_price: '1' }])))
})
