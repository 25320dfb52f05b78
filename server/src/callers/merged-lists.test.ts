import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { seed } from '../../../harness/proof.ts'
import type { Position } from '../ledger/list-requests.ts'
import { mergedPage } from './merged-lists.ts'

type Row = { readonly at: Position; readonly shown: string }

const row = (us: number, id: string): Row => ({ at: { endedUs: BigInt(us), id }, shown: `${us} ${id}` })
const latestFirst = (one: Row, other: Row) =>
  Number(other.at.endedUs - one.at.endedUs) || (one.at.id > other.at.id ? -1 : one.at.id < other.at.id ? 1 : 0)

/** A page of a list as storage gives it: some behind a place, of which it may look at fewer than match. */
function pageOf(rows: readonly Row[], after: Position | undefined, limit: number, lookedAt: number) {
  const behind = rows.filter((one) => after === undefined || latestFirst(one, { at: after, shown: '' }) > 0)
  const shown = behind.slice(0, Math.min(limit, lookedAt))
  return { rows: shown, next: behind.length > shown.length ? (shown.at(-1)?.at ?? null) : null }
}

const list = fc.uniqueArray(fc.tuple(fc.nat(6), fc.nat(40)), { maxLength: 40, selector: ([us, id]) => `${us} ${id}` })

describe('two lists as one', () => {
  it('gives each row of both once, the latest first, whatever the pages are', () => {
    fc.assert(
      fc.property(
        list,
        list,
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 9 }),
        (one, other, limit, looked) => {
          const of = (name: string, rows: readonly (readonly [number, number])[]) =>
            rows.map(([us, id]) => row(us, `${String(id).padStart(2, '0')}${name}`)).sort(latestFirst)
          const [ones, others] = [of('a', one), of('b', other)]
          const seen: string[] = []
          let after: Position | undefined
          for (let pages = 0; pages <= 100; pages += 1) {
            const { rows, next } = mergedPage(
              pageOf(ones, after, limit, limit),
              pageOf(others, after, limit, looked),
              limit,
            )
            assert.ok(rows.length <= limit)
            seen.push(...rows)
            if (next === null) break
            after = next
          }
          assert.deepEqual(
            seen,
            [...ones, ...others].sort(latestFirst).map(({ shown }) => shown),
          )
        },
      ),
      { seed },
    )
  })
})
