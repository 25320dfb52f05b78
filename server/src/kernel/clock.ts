import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'

/** Time as a part, so that any test can replay it. Durations are measured on the monotonic clock only. */
export type Clock = {
  /** Milliseconds since the Unix epoch. */
  readonly nowMs: () => number
  /** Milliseconds on a clock that never steps. */
  readonly monotonicMs: () => number
  readonly sleep: (durationMs: number, signal?: AbortSignal) => Promise<void>
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: async (durationMs, signal) => {
    await delay(durationMs, undefined, signal ? { signal } : {})
  },
}

/** A clock that is off by a fixed amount, as a process with a wrong wall clock would be. */
export function skewedClock(base: Clock, offsetMs: number): Clock {
  return { ...base, nowMs: () => base.nowMs() + offsetMs }
}

/** Waits for something, but no longer than that; whether it was done in time. */
export async function within(
  clock: Pick<Clock, 'sleep'>,
  work: Promise<unknown>,
  deadlineMs: number,
): Promise<boolean> {
  const inTime = new AbortController()
  const late = clock.sleep(deadlineMs, inTime.signal).then(
    () => false,
    () => true,
  )
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    inTime.abort()
  }
}
