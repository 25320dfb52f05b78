import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createIds, idTimeMs, isId } from './ids.ts'

describe('ids', () => {
  it('are UUIDv7 that carry their time', () => {
    const nowMs = Date.UTC(2026, 10, 15)
    const id = createIds({ clock: { nowMs: () => nowMs } }).next()
    assert.ok(isId(id), id)
    assert.equal(idTimeMs(id), nowMs)
  })

  it('never repeat and never go backwards, also when the clock does', () => {
    const start = Date.UTC(2026, 10, 15)
    let step = 0
    // Four ids a millisecond at first, then a clock that is set back an hour.
    const nowMs = () => (step++ < 20_000 ? start + Math.floor(step / 4) : start - 3_600_000)
    const ids = createIds({ clock: { nowMs } })
    const made = Array.from({ length: 60_000 }, () => ids.next())
    assert.deepEqual(made, [...made].sort())
    assert.equal(new Set(made).size, made.length)
  })

  it('stay in order beyond 4,096 in one millisecond', () => {
    const ids = createIds({ clock: { nowMs: () => 1_000 } })
    const made = Array.from({ length: 10_000 }, () => ids.next())
    assert.deepEqual(made, [...made].sort())
    assert.ok(idTimeMs(made.at(-1) ?? '') <= 1_003)
  })

  it('can be replayed with a seeded source of randomness', () => {
    const make = () => createIds({ clock: { nowMs: () => 5 }, random: (buffer) => buffer.fill(7) }).next()
    assert.equal(make(), make())
  })

  for (const text of [
    '',
    'x',
    '0190b8b0-0000-4000-8000-000000000000',
    '0190B8B0-0000-7000-8000-000000000000',
    '0190b8b0-0000-7000-8000-00000000000g',
  ]) {
    it(`do not take ${JSON.stringify(text)} for one of theirs`, () => assert.equal(isId(text), false))
  }
})
