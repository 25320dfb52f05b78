import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LoadReport } from '../load/load.ts'
import { createUndisturbed } from './undisturbed.ts'

const WINDOW = { connections: 1, warmUpMs: 1, measureMs: 1 }
const REPORT: LoadReport = {
  ...{ answered: 1, refused: 0, statuses: { 200: 1 }, broken: 0, bytes: 1, bytesOfOne: 1, measuredMs: 1, perSecond: 1 },
  ...{ p50Ms: 1, p99Ms: 1, servedP50Ms: 1, servedP99Ms: 1, refusedP50Ms: 0, refusedP99Ms: 0, seconds: [], cpuUs: {} },
  ...{ generatorShare: 0.1, othersCores: 0 },
}

/** A machine on which others use so many cores, window by window. */
function busy(...othersCores: readonly number[]) {
  const left = [...othersCores]
  return async () => ({ ...REPORT, othersCores: left.shift() ?? assert.fail('sent once more than expected') })
}

describe('windows in which others used the machine', () => {
  it('are not repeated at 0.2 of a core, and are above', async () => {
    const { measure, counts } = createUndisturbed({ perWindow: 3, perRun: 10 })
    assert.equal((await measure(busy(0.2), WINDOW)).othersCores, 0.2)
    assert.equal((await measure(busy(0.21, 0.5, 0.1), WINDOW)).othersCores, 0.1)
    assert.deepEqual(counts(), { windows: 2, repeated: 2, disturbed: 0 })
  })

  it('are repeated so often at the most, and then the quietest counts as disturbed', async () => {
    const { measure, counts } = createUndisturbed({ perWindow: 3, perRun: 10 })
    assert.equal((await measure(busy(0.9, 0.7, 0.3, 0.8), WINDOW)).othersCores, 0.3)
    assert.deepEqual(counts(), { windows: 1, repeated: 3, disturbed: 1 })
  })

  it('are repeated no more once a run has repeated enough', async () => {
    const { measure, counts } = createUndisturbed({ perWindow: 3, perRun: 4 })
    await measure(busy(1, 1, 1, 1), WINDOW)
    await measure(busy(1, 1), WINDOW)
    assert.equal((await measure(busy(1), WINDOW)).othersCores, 1)
    assert.deepEqual(counts(), { windows: 3, repeated: 4, disturbed: 3 })
  })

  it('are no excuse for a window in which something was refused', async () => {
    const { measure } = createUndisturbed({ perWindow: 3, perRun: 4 })
    await assert.rejects(
      measure(async () => ({ ...REPORT, refused: 1, othersCores: 1 }), WINDOW),
      /was not answered/,
    )
  })
})
