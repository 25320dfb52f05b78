import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { systemClock } from '../kernel/clock.ts'
import { createJob } from './job.ts'
import { silentLog } from './log.ts'

describe('a job', () => {
  it('asks anew each time how long to wait, and goes on after a time that failed', async () => {
    const slept: number[] = []
    const clock = {
      ...systemClock,
      async sleep(durationMs: number, signal?: AbortSignal) {
        slept.push(durationMs)
        if (slept.length === 3) await systemClock.sleep(60_000, signal)
      },
    }
    let times = 0
    const work = async () => {
      times += 1
      if (times === 2) throw new Error('this time')
    }
    const job = createJob({ name: 'some', everyMs: () => times * 10, work, clock, log: silentLog })
    job.start()
    while (slept.length < 3) await systemClock.sleep(1)
    await job.stop(1_000)
    assert.deepEqual(slept.slice(0, 3), [10, 20, 30])
    assert.equal(times, 3)
  })
})
