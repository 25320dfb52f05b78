import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { reportIn } from '../protocols/video.ts'
import { timesOf } from './times.ts'

const CREATED_MS = Date.parse('2026-11-15T20:19:59.950Z')
const told = (output: object) =>
  timesOf(reportIn({ output: { task_status: 'RUNNING', ...output } }, 't')?.times ?? assert.fail(), CREATED_MS)
const secondsOf = (text: string) => Date.parse(text) / 1_000

describe("an upstream's times of a task", () => {
  for (const [zone, submit_time, scheduled_time, end_time] of [
    ['UTC', '2026-11-15 20:20:00.000', '2026-11-15 20:20:01.200', '2026-11-15 20:21:00.123'],
    ['UTC+8', '2026-11-16 04:20:00.000', '2026-11-16 04:20:01.200', '2026-11-16 04:21:00.123'],
    ['UTC-3:30', '2026-11-15 16:50:00.000', '2026-11-15 16:50:01.200', '2026-11-15 16:51:00.123'],
  ] as const)
    it(`are ours, to the millisecond, whatever its zone: ${zone}`, () => {
      assert.deepEqual(told({ submit_time, scheduled_time, end_time }), {
        scheduledSeconds: secondsOf('2026-11-15T20:20:01.200Z'),
        endedSeconds: secondsOf('2026-11-15T20:21:00.123Z'),
      })
    })

  it('are taken for UTC where it does not say when it got the task', () => {
    assert.equal(told({ end_time: '2026-11-15 20:21:00' }).endedSeconds, secondsOf('2026-11-15T20:21:00Z'))
  })

  it('are none where they are no times', () => {
    for (const end_time of [undefined, null, 5, '', 'yesterday', '2026-13-45 99:99:99.000', '2026-11-15T20:21:00Z'])
      assert.deepEqual(told({ end_time }), { scheduledSeconds: undefined, endedSeconds: undefined })
  })
})
