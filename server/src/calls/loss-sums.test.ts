import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { NANOS_LIMIT, nanos, usd } from '../kernel/money.ts'
import { ceilingsOf, createLossSums, type LossCeilings, reachedCeilings } from './loss-sums.ts'

const ROUTE = 'gpt@openai:live'
const NOW = 30_000_000
const CEILINGS = ceilingsOf({
  account_hour_usd: usd('5'),
  account_day_usd: usd('20'),
  route_hour_usd: usd('50'),
  route_day_usd: usd('200'),
})
const none = { hour: null, day: null }

type Lost = readonly [account: string, usd: string, minutesAgo?: number]

/** Which ceilings are reached by what accounts have lost: `account window`, or `route window`. */
function reachedBy(lost: readonly Lost[], ceilings: LossCeilings = CEILINGS): readonly string[] {
  const sums = createLossSums()
  for (const [accountId, amount, ago = 0] of lost)
    sums.put([{ route: ROUTE, accountId, minute: NOW - ago, nanos: usd(amount) }])
  return reachedCeilings(sums.at(NOW), ceilings).map(({ accountId, window }) => `${accountId ?? 'route'} ${window}`)
}

const accounts = (count: number, amount: string): readonly Lost[] =>
  Array.from({ length: count }, (_, at) => [`account-${at}`, amount] as const)

describe('an account at a route', () => {
  it('has reached its ceiling with that amount, and not with a nano less', () => {
    assert.deepEqual(reachedBy([['one', '4.999999999']]), [])
    assert.deepEqual(reachedBy([['one', '5']]), ['one hour'])
  })

  it('has what it lost in the last hour, and in the last day, counted together', () => {
    assert.deepEqual(
      reachedBy([
        ['one', '2.5', 60],
        ['one', '2.5', 0],
      ]),
      ['one hour'],
    )
    assert.deepEqual(
      reachedBy([
        ['one', '2.5', 61],
        ['one', '2.5', 0],
      ]),
      [],
    )
    const day: Lost[] = Array.from({ length: 20 }, (_, hour) => ['one', '1', 70 * hour])
    assert.deepEqual(reachedBy(day), ['one day'])
    assert.deepEqual(reachedBy([...day.slice(1), ['one', '1', 1_441]]), [])
  })

  it('is told of the day where both are reached, because that lasts longer', () => {
    assert.deepEqual(reachedBy([['one', '20']]), ['one day'])
  })

  it('is refused by itself: others at the route are not', () => {
    assert.deepEqual(reachedBy([['hostile', '5000'], ...accounts(2, '0.000000001')]), ['hostile day'])
  })
})

describe('a route', () => {
  it('is not taken from others by one account or two, whatever they lose and whatever others add to it', () => {
    assert.deepEqual(reachedBy([['one', '9000000000']]), ['one day'])
    const two: Lost[] = [
      ['one', '100000'],
      ['two', '100000'],
    ]
    const few = accounts(20, '0.000000001')
    assert.deepEqual(reachedBy([...two, ...few]), ['one day', 'two day'])
    assert.deepEqual(reachedBy([...two, ...few], { ...CEILINGS, account: none }), [])
  })

  it('is taken out when several have contributed so much, though none has reached its own ceiling', () => {
    assert.deepEqual(reachedBy(accounts(20, '2.499999999')), [])
    assert.deepEqual(reachedBy(accounts(20, '2.5')), ['route hour'])
  })

  it('counts of an account no more than its own ceiling', () => {
    assert.equal(reachedBy(accounts(9, '100')).includes('route hour'), false)
    assert.ok(reachedBy(accounts(10, '100')).includes('route day'))
  })

  it('takes three accounts where they have no ceiling of their own', () => {
    const ceilings = { ...CEILINGS, account: none }
    assert.deepEqual(reachedBy(accounts(2, '1000'), ceilings), [])
    assert.deepEqual(reachedBy(accounts(3, '1000'), ceilings), ['route day'])
  })

  it('and an account without ceilings lose as much as it comes to', () => {
    assert.deepEqual(reachedBy(accounts(30, '1000000'), { account: none, route: none }), [])
  })
})

describe('sums', () => {
  it('take a minute that is told again once, as it was told last', () => {
    const sums = createLossSums()
    const minute = { route: ROUTE, accountId: 'one', minute: NOW }
    sums.put([{ ...minute, nanos: nanos(3n) }])
    sums.put([{ ...minute, nanos: nanos(5n) }])
    assert.deepEqual(
      sums.at(NOW).map(({ accounts: [one] }) => [one?.hour, one?.day]),
      [[5n, 5n]],
    )
  })

  it('take an hour as a whole for all that was known of its minutes, without counting any of it twice', () => {
    const sums = createLossSums()
    const hour = NOW / 60 - 3
    const at = (minute: number) => ({ route: ROUTE, accountId: 'one', minute, nanos: nanos(3n) })
    sums.put([at(hour * 60 - 1), at(hour * 60), at(hour * 60 + 59), at((hour + 1) * 60), at(NOW)])
    sums.fold(hour, [{ ...at(hour * 60 + 59), nanos: nanos(7n) }])
    const [one] = sums.at(NOW)[0]?.accounts ?? []
    assert.deepEqual([one?.hour, one?.day], [3n, 16n])
  })

  it('forget what is over, and hold what no column could', () => {
    const sums = createLossSums()
    const most = { route: ROUTE, accountId: 'one', nanos: nanos(NANOS_LIMIT) }
    sums.put([
      { ...most, minute: NOW },
      { ...most, minute: NOW - 1 },
    ])
    assert.equal(sums.at(NOW)[0]?.accounts[0]?.day, NANOS_LIMIT)
    assert.deepEqual(sums.at(NOW + 1_441), [])
  })
})
