import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createRecentMap } from './recent-map.ts'

const MAX = 8
const step = fc.tuple(fc.constantFrom('get', 'set', 'delete', 'has'), fc.integer({ min: 0, max: 30 }))

describe('a map of what was used last', () => {
  it('keeps to its bound in what its values weigh, and keeps what was used last', () => {
    const added = fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 60 }))
    fc.assert(
      fc.property(fc.array(added, { maxLength: 300 }), (all) => {
        const map = createRecentMap<number, { readonly weight: number }>(100, ({ weight }) => weight)
        for (const [key, weight] of all) {
          map.set(key, { weight })
          assert.equal(map.get(key)?.weight, weight > 50 ? undefined : weight)
          const kept = Array.from({ length: 10 }, (_, one) => (map.has(one) ? one : undefined))
          assert.equal(kept.filter((one) => one !== undefined).length, map.size())
        }
        const weights = Array.from({ length: 10 }, (_, key) => map.get(key)?.weight ?? 0)
        assert.ok(weights.reduce((sum, weight) => sum + weight, 0) <= 100)
      }),
    )
  })

  it('never has more than its bound, nor another value than was set last, and keeps what was used among the last', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const map = createRecentMap<number, { readonly of: number }>(MAX)
        const truth = new Map<number, { readonly of: number }>()
        /** In the order of their last use. */
        const used: number[] = []
        const use = (key: number) => used.splice(0, used.length, ...used.filter((one) => one !== key), key)
        for (const [what, key] of steps) {
          if (what === 'set') {
            const value = { of: key }
            map.set(key, value)
            truth.set(key, value)
            use(key)
          } else if (what === 'delete') {
            map.delete(key)
            truth.delete(key)
            assert.ok(!map.has(key))
          } else if (what === 'get') {
            const found = map.get(key)
            if (found !== undefined) {
              assert.equal(found, truth.get(key))
              use(key)
            }
          } else if (map.has(key)) assert.ok(truth.has(key))
          assert.ok(map.size() <= MAX)
          // The one that moves last into a full generation begins the next one, so it is one less than the half.
          const last = used.filter((one) => truth.has(one)).slice(1 - MAX / 2)
          assert.deepEqual(
            last.filter((one) => !map.has(one)),
            [],
          )
        }
      }),
    )
  })

  it('has nothing after it was cleared', () => {
    const map = createRecentMap<string, number>(MAX)
    for (const key of ['a', 'b', 'c', 'd', 'e']) map.set(key, 1)
    map.clear()
    assert.deepEqual([map.size(), map.get('a'), map.has('e')], [0, undefined, false])
  })
})
