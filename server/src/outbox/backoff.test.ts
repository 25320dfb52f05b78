import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { seed } from '../../../harness/proof.ts'
import { backoffMs, RETRIES } from './backoff.ts'

const HOUR_MS = 3_600_000

describe('the wait after a failed attempt', () => {
  it('doubles up to a bound', () => {
    const waits = Array.from({ length: 13 }, (_, at) => backoffMs(at + 1, RETRIES, () => 1))
    assert.deepEqual(
      waits.map((ms) => ms / 1_000),
      [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600, 3_600],
    )
  })

  it('is random from its half on, and never beyond its bounds', () => {
    const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000 }), chance, (attempts, random) => {
        const whole = backoffMs(attempts, RETRIES, () => 1)
        const waitMs = backoffMs(attempts, RETRIES, () => random)
        return waitMs >= whole / 2 && waitMs <= whole && waitMs <= RETRIES.mostMs
      }),
      { seed },
    )
    assert.notEqual(
      backoffMs(3, RETRIES, () => 0.1),
      backoffMs(3, RETRIES, () => 0.9),
    )
  })

  it('adds up to some hours before a message is given up', () => {
    const all = Array.from({ length: RETRIES.attempts - 1 }, (_, at) => backoffMs(at + 1, RETRIES, () => 0.5))
    const hours = all.reduce((sum, ms) => sum + ms, 0) / HOUR_MS
    assert.ok(hours > 6 && hours < 12, `${hours}`)
  })
})
