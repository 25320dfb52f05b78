import type { Backlog } from '../calls/calls.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Log } from '../telemetry/log.ts'

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: Pick<Log, 'warn'>
  readonly backlog: Backlog
}

/** Who would wait for longer than this in our own queues is refused at once. */
const MOST_MS = 500
/** A queue that is longer than this for a while is no burst, and does not get shorter by itself. */
const LONG_MS = 250
const PATIENCE_MS = 500
/** What may wait from then on: enough for PostgreSQL to have its next batch at hand. */
const ROOM = 128
/** Without a refusal for so long, it was not needed. */
const CALM_MS = 1_000

/**
 * Tells whether one more request is too much. Only what waits for PostgreSQL in this process counts: a call that waits for
 * its upstream costs nothing, however long it takes. A burst is taken as long as it is worked off soon. Once the queue
 * stands, it is kept short until nobody has to be refused any more, so that as many are taken as are done.
 */
export function createShedding({ clock, log, backlog }: Parts): () => boolean {
  let longSinceMs: number | undefined
  let isKeptShort = false
  let refused = 0
  let refusedAtMs = 0

  function watchLength(waitMs: number, nowMs: number): void {
    if (waitMs <= LONG_MS) longSinceMs = undefined
    else longSinceMs ??= nowMs
    if (longSinceMs !== undefined && nowMs - longSinceMs >= PATIENCE_MS) isKeptShort = true
  }

  /** The log has a line for each time that this goes on; the metric has every refusal. */
  function refuse(nowMs: number): void {
    if (refused === 0) log.warn('overloaded: some requests are refused')
    refused += 1
    refusedAtMs = nowMs
  }

  function rest(): void {
    log.warn('no longer overloaded', { count: refused, reason: 'requests refused' })
    isKeptShort = false
    refused = 0
  }

  return () => {
    const nowMs = clock.monotonicMs()
    const waitMs = backlog.waitMs()
    watchLength(waitMs, nowMs)
    const isTooMuch = waitMs > MOST_MS || (isKeptShort && backlog.waiting() >= ROOM)
    if (isTooMuch) refuse(nowMs)
    else if (refused > 0 && nowMs - refusedAtMs >= CALM_MS) rest()
    return isTooMuch
  }
}
