import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { nextPeriodMs, type Period } from './period.ts'

const next = (period: Period, now: string) => {
  const atMs = nextPeriodMs(period, Date.parse(now))
  return atMs === null ? null : new Date(atMs).toISOString()
}

describe('the next period', () => {
  it('begins at midnight UTC: of a day, of a Monday, of a first', () => {
    // 16 November 2026 is a Monday.
    assert.equal(next('day', '2026-11-16T00:00:00.000Z'), '2026-11-17T00:00:00.000Z')
    assert.equal(next('week', '2026-11-16T00:00:00.000Z'), '2026-11-23T00:00:00.000Z')
    assert.equal(next('week', '2026-11-15T23:59:59.999Z'), '2026-11-16T00:00:00.000Z')
    assert.equal(next('week', '2026-11-21T12:00:00.000Z'), '2026-11-23T00:00:00.000Z')
    assert.equal(next('week', '2026-12-29T12:00:00.000Z'), '2027-01-04T00:00:00.000Z')
    assert.equal(next('month', '2026-12-31T23:59:59.999Z'), '2027-01-01T00:00:00.000Z')
    assert.equal(next('day', '2028-02-28T12:00:00.000Z'), '2028-02-29T00:00:00.000Z')
  })

  it('never begins for a total', () => {
    assert.equal(next('total', '2026-11-16T00:00:00.000Z'), null)
  })
})
