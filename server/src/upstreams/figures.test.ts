import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createUpstreamFigures } from './figures.ts'

const MINUTE_MS = 60_000
const MINUTES = 5

describe('the figures of an upstream', () => {
  it('are counts and times of the last minutes, each time to a tenth', () => {
    let nowMs = 10 * MINUTE_MS
    const figures = createUpstreamFigures({ clock: { monotonicMs: () => nowMs }, minutes: MINUTES })
    assert.deepEqual(figures.of('one'), { asked: 0, failed: 0, p50Ms: null, p95Ms: null })
    for (let call = 1; call <= 100; call += 1) figures.note('one', call <= 90 ? 200 : 4_000, call > 95)
    const { asked, failed, p50Ms, p95Ms } = figures.of('one')
    assert.deepEqual([asked, failed], [100, 5])
    assert.ok(Math.abs((p50Ms ?? 0) / 200 - 1) <= 0.1, `${p50Ms}`)
    assert.ok(Math.abs((p95Ms ?? 0) / 4_000 - 1) <= 0.1, `${p95Ms}`)
    nowMs += (MINUTES - 1) * MINUTE_MS
    figures.note('one', 1, false)
    assert.equal(figures.of('one').asked, 101)
    nowMs += MINUTE_MS
    assert.deepEqual([figures.of('one').asked, figures.of('one').failed], [1, 0])
    nowMs += MINUTES * MINUTE_MS
    assert.deepEqual(figures.of('one'), { asked: 0, failed: 0, p50Ms: null, p95Ms: null })
  })

  it('take any time, also none and hours', () => {
    const figures = createUpstreamFigures({ clock: { monotonicMs: () => 0 }, minutes: MINUTES })
    for (const ms of [0, 0.2, 3_600_000_000]) figures.note('odd', ms, false)
    assert.equal(figures.of('odd').asked, 3)
    assert.equal(figures.of('odd').p50Ms, 1)
  })
})
