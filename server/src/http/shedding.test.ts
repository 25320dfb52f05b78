import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createShedding } from './shedding.ts'

/** The rule by itself: the test says how much waits, and moves the clock. */
function stage() {
  let nowMs = 0
  const load = { waiting: 0, waitMs: 0 }
  const loop = { isBusy: false, idleMs: 0 }
  const lines: string[] = []
  const mustShed = createShedding({
    clock: { monotonicMs: () => nowMs },
    log: { warn: (text, { count } = {}) => lines.push(count === undefined ? text : `${text}: ${count}`) },
    backlog: { waiting: () => load.waiting, waitMs: () => load.waitMs },
    idleMs: () => loop.idleMs,
  })
  return {
    loop,
    lines,
    mustShed,
    pass(durationMs: number, now: Partial<typeof load> = {}) {
      nowMs += durationMs
      Object.assign(load, now)
    },
    /** One request each 10 ms for so long; how many of them were refused. */
    refusedDuring(durationMs: number, now: Partial<typeof load> = {}): number {
      Object.assign(load, now)
      let refused = 0
      for (let passed = 0; passed < durationMs; passed += 10) {
        nowMs += 10
        if (!loop.isBusy) loop.idleMs += 1
        if (mustShed()) refused += 1
      }
      return refused
    },
  }
}

const STANDING = { waiting: 1_000, waitMs: 400 }
const NOTHING = { waiting: 0, waitMs: 0 }

describe('shedding', () => {
  it('refuses nobody while the next batch has room, however many wait for it', () => {
    const { refusedDuring, lines } = stage()
    assert.equal(refusedDuring(60_000, { waiting: 250, waitMs: 0 }), 0)
    assert.deepEqual(lines, [])
  })

  it('refuses at once who would wait for more than half a second, and nobody as soon as that is over', () => {
    const { mustShed, pass } = stage()
    pass(0, { waiting: 2_000, waitMs: 501 })
    assert.equal(mustShed(), true)
    pass(10, { waiting: 1_900, waitMs: 480 })
    assert.equal(mustShed(), false)
  })

  it('takes a burst that is worked off in time', () => {
    const { refusedDuring } = stage()
    assert.equal(refusedDuring(490, STANDING), 0)
    assert.equal(refusedDuring(100, { waiting: 500, waitMs: 200 }), 0)
    assert.equal(refusedDuring(490, STANDING), 0, 'and the next one')
  })

  it('does not take two moments of a long queue for one that stood in between', () => {
    const { mustShed, pass } = stage()
    pass(0, STANDING)
    mustShed()
    pass(60_000)
    assert.equal(mustShed(), false)
  })

  it('keeps the queue short once it has stood for half a second, without letting everybody in when it is', () => {
    const { refusedDuring } = stage()
    refusedDuring(500, STANDING)
    assert.equal(refusedDuring(100, STANDING), 10)
    assert.equal(refusedDuring(100, { waiting: 128, waitMs: 0 }), 10)
    assert.equal(refusedDuring(100, { waiting: 127, waitMs: 0 }), 0)
    assert.equal(refusedDuring(100, { waiting: 128, waitMs: 0 }), 10)
  })

  it('leaves less room while the process has no moment to spare, but always some, and gives it back by and by', () => {
    const { refusedDuring, loop } = stage()
    refusedDuring(600, STANDING)
    loop.isBusy = true
    assert.equal(refusedDuring(100, { waiting: 40, waitMs: 0 }), 0)
    refusedDuring(1_000, { waiting: 40, waitMs: 0 })
    assert.equal(refusedDuring(100, { waiting: 16, waitMs: 0 }), 10)
    assert.equal(refusedDuring(100, { waiting: 15, waitMs: 0 }), 0)
    loop.isBusy = false
    assert.equal(refusedDuring(50, { waiting: 100, waitMs: 0 }), 5)
    refusedDuring(600, { waiting: 100, waitMs: 0 })
    assert.equal(refusedDuring(50, { waiting: 100, waitMs: 0 }), 0)
  })

  it('is patient again when nobody had to be refused for a second', () => {
    const { refusedDuring } = stage()
    refusedDuring(600, STANDING)
    assert.equal(refusedDuring(990, NOTHING), 0)
    assert.ok(refusedDuring(10, { waiting: 200, waitMs: 0 }) > 0, 'not yet')
    assert.equal(refusedDuring(1_010, NOTHING), 0)
    assert.equal(refusedDuring(100, { waiting: 200, waitMs: 0 }), 0)
  })

  it('writes a line when it begins and one when it ends, with how many it refused', () => {
    const { refusedDuring, lines } = stage()
    refusedDuring(500, { waiting: 3_000, waitMs: 900 })
    refusedDuring(1_500, NOTHING)
    assert.deepEqual(lines, ['overloaded: some requests are refused', 'no longer overloaded: 50'])
  })
})
