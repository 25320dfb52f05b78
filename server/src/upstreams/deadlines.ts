import type { Clock } from '../kernel/clock.ts'

/** Something with a deadline that moves. */
export type Watched = {
  /** On the monotonic clock. */
  readonly deadlineMs: number
  /** Its place among those that are watched, which is for whoever watches to say; -1 where nobody does. */
  place: number
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
  // No Set: when it grows it leaves a table behind that still refers to whatever was in it, so that half of all exchanges
  // would outlive the collector's first look at them.
  const watched: Watched[] = []
  const stop = new AbortController()
  let isRunning = false

  async function run(): Promise<void> {
    isRunning = true
    while (watched.length > 0 && !stop.signal.aborted) {
      await clock.sleep(TICK_MS, stop.signal).catch(() => {})
      const nowMs = clock.monotonicMs()
      // Who is overdue is forgotten as a rule, and others come to stand in its place.
      for (const one of watched.filter(({ deadlineMs }) => nowMs >= deadlineMs))
        if (one.place !== -1) one.overdue(nowMs)
    }
    isRunning = false
  }

  function forget(one: Watched): void {
    const { place } = one
    const last = watched[place] === one ? watched.pop() : undefined
    one.place = -1
    if (last === undefined || last === one) return
    watched[place] = last
    last.place = place
  }

  return {
    watch(one) {
      one.place = watched.length
      watched.push(one)
      if (!isRunning) void run()
    },
    forget,
    close() {
      stop.abort()
      for (const one of [...watched]) one.abandon()
      watched.length = 0
    },
  }
}
