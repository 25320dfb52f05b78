import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { startChild } from '../harness/child.ts'
import { treeCpuMicroseconds, watchOthers } from './cpu.ts'

const BURNT_US = 2_000_000
/** Kernels count in steps of some milliseconds for each process, and the two looks are one after the other. */
const STEPS_US = 1_000_000

const BURN = `while (process.cpuUsage().user < ${BURNT_US}) Math.random()`

describe('the CPU time of others', () => {
  it('has what others used, and nothing of what is ours, ended or not', async () => {
    const sleeper = startChild(process.execPath, ['-e', 'setTimeout(() => {}, 600000)'])
    try {
      // For the first of them the one who burns is ours; for the second, a stranger. Whoever else works is a stranger to both.
      const watches = [watchOthers(process.pid), watchOthers(sleeper.pid)]
      const usedBeforeUs = treeCpuMicroseconds(process.pid)
      execFileSync(process.execPath, ['-e', BURN])
      const [toUs = 0, toSleeper = 0] = watches.map((look) => look())
      const usedUs = treeCpuMicroseconds(process.pid) - usedBeforeUs
      assert.ok(usedUs >= BURNT_US - STEPS_US, `${usedUs} µs were used`)
      assert.ok(toSleeper - toUs >= BURNT_US - STEPS_US, `${toSleeper} µs by others, and ${toUs} without ours`)
      assert.ok(toUs >= 0)
    } finally {
      await sleeper.kill()
    }
  })
})
