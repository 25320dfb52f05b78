import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createShedding } from './shedding.ts'

/** The rule by itself: the test says how long one would wait, and moves the clock. */
function stage() {
  let nowMs = 0
  let waitMs = 0
  const lines: string[] = []
  const mustShed = createShedding({
    clock: { monotonicMs: () => nowMs },
    log: { warn: (text, { count } = {}) => lines.push(count === undefined ? text : `${text}: ${count}`) },
    waitMs: () => waitMs,
  })
  return {
    lines,
    /** One request each 10 ms for so long; how many of them were refused. */
    refusedDuring(durationMs: number, wait: number): number {
      waitMs = wait
      let refused = 0
      for (let passed = 0; passed < durationMs; passed += 10) {
        nowMs += 10
        if (mustShed()) refused += 1
      }
      return refused
    },
  }
}

describe('shedding', () => {
  it('refuses who would wait for more than a second, and nobody as soon as that is over', () => {
    const { refusedDuring } = stage()
    assert.equal(refusedDuring(60_000, 1_000), 0)
    assert.equal(refusedDuring(100, 1_001), 10)
    assert.equal(refusedDuring(100, 990), 0)
  })

  it('writes a line when it begins and one when it is over, with how many it refused', () => {
    const { refusedDuring, lines } = stage()
    refusedDuring(500, 3_000)
    refusedDuring(990, 0)
    refusedDuring(100, 3_000)
    assert.deepEqual(lines, ['overloaded: some requests are refused'])
    refusedDuring(1_500, 0)
    assert.deepEqual(lines, ['overloaded: some requests are refused', 'no longer overloaded: 60'])
  })
})
