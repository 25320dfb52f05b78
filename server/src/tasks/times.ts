import type { TaskTimes } from '../calls/call.ts'
import type { ToldTimes } from '../protocols/task.ts'

/** All time zones are whole quarters of an hour apart. */
const QUARTER_MS = 900_000

/**
 * What an upstream tells of a task's times, as ours. It does not tell its time zone; but it got the task when we had just made it, so
 * that the two times of that differ by the zone and by less than the eighth of an hour by which a clock may be wrong.
 */
export function timesOf({ submittedMs, scheduledMs, endedMs }: ToldTimes, createdAtMs: number): TaskTimes {
  const zoneMs = Math.round(((submittedMs ?? createdAtMs) - createdAtMs) / QUARTER_MS) * QUARTER_MS
  const ours = (toldMs: number | undefined) => (toldMs === undefined ? undefined : (toldMs - zoneMs) / 1_000)
  return { scheduledSeconds: ours(scheduledMs), endedSeconds: ours(endedMs) }
}
