import { performance } from 'node:perf_hooks'
import type { Backlog } from '../calls/calls.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Log } from '../telemetry/log.ts'

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: Pick<Log, 'warn'>
  readonly backlog: Backlog
  /** For how long, of all its life, this process has had nothing to do. */
  readonly idleMs?: () => number
}

/** Who would wait for longer than this in our own queues is refused at once. */
const MOST_MS = 500
/** A queue that is longer than this for a while is no burst, and does not get shorter by itself. */
const LONG_MS = 250
const PATIENCE_MS = 500
/**
 * What may wait from then on. The most lets PostgreSQL have its next batch at hand. It is less while this process has no moment
 * to spare: whoever is taken then waits at every step for those who are being refused, and makes them wait.
 */
const ROOM = { least: 16, most: 128, step: 8, cut: 0.7 }
const SPARE_SHARE = 0.05
const LOOK_MS = 50
/** Without a refusal for so long, it was not needed. */
const CALM_MS = 1_000

/**
 * Tells whether one more request is too much. Only what waits for PostgreSQL in this process counts: a call that waits for
 * its upstream costs nothing, however long it takes. A burst is taken as long as it is worked off soon. Once the queue
 * stands, it is kept short until nobody has to be refused any more, so that as many are taken as are done.
 */
export function createShedding({ clock, log, backlog, idleMs = loopIdleMs }: Parts): () => boolean {
  const hasSpareTime = createSpareTime(idleMs, clock.monotonicMs())
  let room: number = ROOM.most
  let longSinceMs: number | undefined
  let askedAtMs = 0
  let isKeptShort = false
  let refused = 0
  let refusedAtMs = 0

  function watchLength(waitMs: number, nowMs: number): void {
    // What it was when nobody came is not known.
    if (waitMs <= LONG_MS || nowMs - askedAtMs > LONG_MS) longSinceMs = undefined
    askedAtMs = nowMs
    if (waitMs > LONG_MS) longSinceMs ??= nowMs
    if (longSinceMs !== undefined && nowMs - longSinceMs >= PATIENCE_MS) isKeptShort = true
  }

  function fitRoom(nowMs: number): void {
    const hasSpare = hasSpareTime(nowMs)
    if (hasSpare === undefined) return
    room = hasSpare ? Math.min(ROOM.most, room + ROOM.step) : Math.max(ROOM.least, room * ROOM.cut)
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
    fitRoom(nowMs)
    const isTooMuch = waitMs > MOST_MS || (isKeptShort && backlog.waiting() >= room)
    if (isTooMuch) refuse(nowMs)
    else if (refused > 0 && nowMs - refusedAtMs >= CALM_MS) rest()
    return isTooMuch
  }
}

/** Tells now and then whether there was time to spare since it last did. */
function createSpareTime(idleMs: () => number, startedMs: number): (nowMs: number) => boolean | undefined {
  let last = { atMs: startedMs, idleMs: idleMs() }
  return (nowMs) => {
    const passedMs = nowMs - last.atMs
    if (passedMs < LOOK_MS) return undefined
    const before = last.idleMs
    last = { atMs: nowMs, idleMs: idleMs() }
    return last.idleMs - before >= SPARE_SHARE * passedMs
  }
}

function loopIdleMs(): number {
  return performance.eventLoopUtilization().idle
}
