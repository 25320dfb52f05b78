import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HOUR_SECONDS, splitByHours } from './usage-window.ts'

const none = { from: 0, to: 0 }
const whole = (from: number, to: number) => ({ from: from * HOUR_SECONDS, to: to * HOUR_SECONDS })

describe('the window of a report', () => {
  for (const [where, startSeconds, endSeconds] of [
    ['the first half of an hour', 600, 1_200],
    ['the second half', 2_400, 3_000],
    ['both halves', 600, 3_000],
    ['an hour, but for its first and last second', 1, 3_599],
  ] as const) {
    it(`is read as it is where it lies inside ${where}`, () => {
      const { whole, cuts } = splitByHours({ startSeconds, endSeconds })
      assert.deepEqual(cuts, [{ from: startSeconds, to: endSeconds, sign: '' }])
      assert.ok(whole.from >= whole.to, 'and no hour as a whole')
    })
  }

  it('is nothing but hours where it begins and ends with one', () => {
    assert.deepEqual(splitByHours({ startSeconds: 0, endSeconds: 7_200 }), { whole: whole(0, 2), cuts: [] })
    assert.deepEqual(splitByHours({ startSeconds: 0, endSeconds: 0 }), { whole: none, cuts: [] })
  })

  it('has parts of its first and its last hour, where less of the last lies in it than after it', () => {
    assert.deepEqual(splitByHours({ startSeconds: 3_000, endSeconds: 8_000 }), {
      whole: whole(1, 2),
      cuts: [
        { from: 3_000, to: 3_600, sign: '' },
        { from: 7_200, to: 8_000, sign: '' },
      ],
    })
  })

  it('has its last hour as a whole, less what came afterwards, where that is less', () => {
    const last = { whole: whole(1, 3), first: { from: 3_000, to: 3_600, sign: '' } }
    assert.deepEqual(splitByHours({ startSeconds: 3_000, endSeconds: 10_000 }), {
      whole: last.whole,
      cuts: [last.first, { from: 10_000, to: 10_800, sign: '-' }],
    })
    assert.deepEqual(
      splitByHours({ startSeconds: 3_000, endSeconds: 8_000, nowSeconds: 8_010 }),
      { whole: last.whole, cuts: [last.first, { from: 8_000, to: 10_800, sign: '-' }] },
      'nothing can have come after now',
    )
  })
})
