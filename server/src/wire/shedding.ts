import type { Clock } from '../kernel/clock.ts'
import type { Log } from '../telemetry/log.ts'

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: Pick<Log, 'warn'>
  /** How long one more call would wait in our own queues. */
  readonly waitMs: () => number
}

/** A second is little beside what a model takes, and a full queue makes large batches, which are what PostgreSQL does best. */
const MOST_MS = 1_000
/** Without a refusal for so long, it is over. */
const CALM_MS = 1_000

/**
 * Tells whether one more request is too much. Only what waits for PostgreSQL in this process counts: a call that waits for
 * its upstream costs nothing, however long it takes.
 */
export function createShedding({ clock, log, waitMs }: Parts): () => boolean {
  let refused = 0
  let refusedAtMs = 0

  /** The log has a line for each time that this goes on; the metric has every refusal. */
  function refuse(): void {
    if (refused === 0) log.warn('overloaded: some requests are refused')
    refused += 1
    refusedAtMs = clock.monotonicMs()
  }

  function rest(): void {
    log.warn('no longer overloaded', { count: refused, reason: 'requests refused' })
    refused = 0
  }

  return () => {
    const isTooMuch = waitMs() > MOST_MS
    if (isTooMuch) refuse()
    else if (refused > 0 && clock.monotonicMs() - refusedAtMs >= CALM_MS) rest()
    return isTooMuch
  }
}
