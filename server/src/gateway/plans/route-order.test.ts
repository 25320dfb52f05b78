import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { count, seed } from '../../../../harness/proof.ts'
import { conversationOf } from './conversation.ts'
import { orderFor, orderRoutes } from './route-order.ts'

type Placed = { readonly id: string; readonly priority: number; readonly weight: number }

const route = (id: string, weight = 1, priority = 0): Placed => ({ id, priority, weight })
const idsOf = (routes: readonly Placed[]) => routes.map(({ id }) => id)
const firstOf = (routes: readonly Placed[], key: number) => orderFor(routes, key)[0]?.id

/** The keys of so many conversations, each of which began with other words. */
function keysOf(conversations: number, accountId = 'account'): readonly number[] {
  return Array.from({ length: conversations }, (_, at) => {
    const body = { messages: [{ role: 'user', content: `This is conversation ${at}.` }] }
    return conversationOf({ accountId, model: 'm', protocol: 'openai', body, headers: {}, endUser: undefined }).key
  })
}

/** How many conversations each route is the first of. */
function countsOf(routes: readonly Placed[], keys: readonly number[]): ReadonlyMap<string, number> {
  const counts = new Map(routes.map(({ id }) => [id, 0]))
  for (const key of keys) {
    const first = firstOf(routes, key) ?? ''
    counts.set(first, (counts.get(first) ?? 0) + 1)
  }
  return counts
}

/** Ids as they are in PostgreSQL: those of one model differ in few digits. */
const ids = fc.uniqueArray(fc.uuid({ version: 7 }), { minLength: 2, maxLength: 6 })
const someRoutes = ids.chain((all) =>
  fc
    .array(fc.integer({ min: 1, max: 100 }), { minLength: all.length, maxLength: all.length })
    .map((weights) => all.map((id, at) => route(id, weights[at]))),
)
const someKey = fc.integer({ min: 0, max: 2 ** 52 - 1 })
const RUNS = count({ full: 10_000, reduced: 300 })

describe('the order of routes', () => {
  it('is by priority, whatever the weights', () => {
    const routes = [route('c', 1, 5), route('a', 1, -1), route('b', 1_000_000, 0)]
    for (const key of keysOf(20)) assert.deepEqual(idsOf(orderFor(routes, key)), ['a', 'b', 'c'])
    assert.deepEqual(orderFor([], 1), [])
    assert.deepEqual(idsOf(routes), ['c', 'a', 'b'])
  })

  it('keeps the weights within 5 % over 10,000 conversations, and so for the next among the rest', () => {
    const routes = [route('019a-1'), route('019a-2', 2), route('019a-3', 3)]
    const keys = keysOf(10_000)
    for (const [id, first] of countsOf(routes, keys)) {
      const wanted = (keys.length * Number(routes.find((one) => one.id === id)?.weight)) / 6
      assert.ok(Math.abs(first / wanted - 1) < 0.05, `${id}: ${first} instead of ${wanted}`)
      const others = routes.filter((one) => one.id !== id)
      const left = keys.filter((key) => firstOf(routes, key) === id)
      const weights = others.reduce((sum, { weight }) => sum + weight, 0)
      for (const [next, times] of countsOf(others, left)) {
        const share = Number(others.find((one) => one.id === next)?.weight) / weights
        // Five standard deviations: of few conversations 5 % may be chance.
        const most = 5 * Math.sqrt(left.length * share * (1 - share))
        assert.ok(Math.abs(times - left.length * share) < most, `${next} after ${id}: ${times} of ${left.length}`)
      }
    }
  })

  it('keeps generated weights over many conversations', () => {
    const keys = keysOf(2_000)
    fc.assert(
      fc.property(someRoutes, (routes) => {
        const sum = routes.reduce((total, { weight }) => total + weight, 0)
        for (const [id, first] of countsOf(routes, keys)) {
          const share = Number(routes.find((one) => one.id === id)?.weight) / sum
          const most = 6 * Math.sqrt(keys.length * share * (1 - share)) + 1
          assert.ok(Math.abs(first - keys.length * share) < most, `${id}: ${first} instead of ${keys.length * share}`)
        }
      }),
      { seed, numRuns: count({ full: 2_000, reduced: 50 }) },
    )
  })

  it('is moved by a new route only for conversations that go to it', () => {
    fc.assert(
      fc.property(someRoutes, someKey, fc.nat(), (routes, key, at) => {
        const added = routes[at % routes.length]
        const before = routes.filter((one) => one !== added)
        const order = orderFor(routes, key)
        assert.deepEqual(
          order.filter((one) => one !== added),
          orderFor(before, key),
        )
      }),
      { seed, numRuns: RUNS },
    )
    const keys = keysOf(3_000)
    const three = [route('a'), route('b'), route('c')]
    const moved = keys.filter((key) => firstOf(three, key) !== firstOf([...three, route('d')], key))
    assert.ok(Math.abs(moved.length / keys.length - 0.25) < 0.04, `${moved.length} moved`)
    assert.ok(moved.every((key) => firstOf([...three, route('d')], key) === 'd'))
  })

  it('moves only the conversations of routes that are out, each to one place, and gives them back', () => {
    const outages = fc.array(fc.array(fc.nat({ max: 5 }), { maxLength: 4 }), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(someRoutes, outages, fc.array(someKey, { minLength: 1, maxLength: 20 }), (routes, times, keys) => {
        const homes = keys.map((key) => firstOf(routes, key))
        for (const out of times) {
          const left = routes.filter((_, at) => !out.includes(at))
          for (const [at, key] of keys.entries()) {
            const place = orderFor(routes, key).find((one) => left.includes(one))?.id
            // Whoever knows of the outage puts it where whoever is refused does.
            assert.equal(place, firstOf(left, key))
            if (left.some(({ id }) => id === homes[at])) assert.equal(place, homes[at])
          }
        }
        assert.deepEqual(
          keys.map((key) => firstOf(routes, key)),
          homes,
        )
      }),
      { seed, numRuns: RUNS },
    )
  })

  it('by chance keeps the weights too', () => {
    const routes = [route('a', 1), route('b', 3), route('c', 6), route('last', 1_000, 1)]
    const TIMES = 30_000
    let cs = 0
    for (let i = 0; i < TIMES; i += 1) {
      const order = idsOf(orderRoutes(routes, () => 1 - Math.random()))
      assert.equal(order[3], 'last')
      if (order[0] === 'c') cs += 1
    }
    // Five standard deviations are 0.0141.
    assert.ok(Math.abs(cs / TIMES - 0.6) < 0.0145, `c: ${cs}`)
  })
})
