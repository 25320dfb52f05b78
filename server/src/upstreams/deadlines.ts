import type { Clock } from '../kernel/clock.ts'

/** Something with a deadline that moves. */
export type Watched = {
  /** On the clock's monotonic face. */
  readonly deadlineMs: number
  /** Called when the deadline has passed, until it is moved or forgotten. */
  readonly overdue: (nowMs: number) => void
  /** Called when nobody watches any longer. */
  readonly abandon: () => void
}

export type Deadlines = {
  readonly watch: (watched: Watched) => void
  readonly forget: (watched: Watched) => void
  /** Abandons whatever is watched. */
  readonly close: () => void
}

/** How late a deadline can be noticed. */
const TICK_MS = 20

/**
 * One timer for all deadlines, and none while there are none: a call has up to four of them, and each byte of a stream
 * moves one, so that moving has to cost no more than writing a number.
 */
export function createDeadlines(clock: Pick<Clock, 'monotonicMs' | 'sleep'>): Deadlines {
  const watched = new Set<Watched>()
  const stop = new AbortController()
  let isRunning = false

  async function run(): Promise<void> {
    isRunning = true
    while (watched.size > 0 && !stop.signal.aborted) {
      await clock.sleep(TICK_MS, stop.signal).catch(() => {})
      const nowMs = clock.monotonicMs()
      for (const one of watched) if (nowMs >= one.deadlineMs) one.overdue(nowMs)
    }
    isRunning = false
  }

  return {
    watch(one) {
      watched.add(one)
      if (!isRunning) void run()
    },
    forget: (one) => watched.delete(one),
    close() {
      stop.abort()
      for (const one of watched) one.abandon()
      watched.clear()
    },
  }
}
