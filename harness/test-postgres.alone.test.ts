import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { freshDatabase } from './test-postgres.ts'

const LIMIT_MS = 100

describe('a fresh database', () => {
  it('is there, with all migrations, in less than 100 ms', async () => {
    await freshDatabase()
    const taken: number[] = []
    for (let n = 0; n < 9; n += 1) {
      const startedAtMs = performance.now()
      await freshDatabase()
      taken.push(performance.now() - startedAtMs)
    }
    const median = taken.toSorted((a, b) => a - b)[4] ?? Number.NaN
    console.log(`fresh database: ${taken.map((ms) => ms.toFixed(0)).join(' ')} ms, median ${median.toFixed(0)} ms`)
    assert.ok(median < LIMIT_MS, `the median was ${median} ms`)
  })
})
