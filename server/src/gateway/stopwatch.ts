import type { Clock } from '../kernel/clock.ts'

/** When what happened to a call, in milliseconds since its request came. */
export type Stopwatch = {
  readonly noted: Readonly<Partial<Record<Moment, number>>>
  readonly note: (moment: Moment) => void
  /** Notes that two happened in the same turn. */
  readonly noteAs: (moment: Moment, other: Moment) => void
  /** A time of the process's clock. */
  readonly since: (atMs: number) => number
  /** When something was noted last, by the process's clock. */
  readonly lastMs: () => number
}

type Moment = 'begun' | 'answered' | 'settled' | 'firstByte'

export function startStopwatch(clock: Pick<Clock, 'monotonicMs'>): Stopwatch {
  const startedMs = clock.monotonicMs()
  const noted: Partial<Record<Moment, number>> = {}
  let lastMs = startedMs
  const since = (atMs: number) => Math.round((atMs - startedMs) * 1_000) / 1_000
  return {
    noted,
    note(moment) {
      lastMs = clock.monotonicMs()
      noted[moment] = since(lastMs)
    },
    noteAs(moment, other) {
      const atMs = noted[moment] ?? noted[other]
      if (atMs !== undefined) noted[moment] = atMs
    },
    since,
    lastMs: () => lastMs,
  }
}
