import type pg from 'pg'
import { z } from 'zod'
import type { Clock } from '../kernel/clock.ts'
import { wasCanceled } from '../storage/refusal.ts'

/** Names of keys that are combined at once. While they are, nobody adds up usage. */
const AT_ONCE = { first: 100, most: 1_000 }
/** By how much a portion grows that was quick. */
const GROWTH = 20
/** A portion that took longer is followed by half of it. */
const QUICK_MS = 250
/** Between two portions, beside as long as the last one took: whoever adds up usage tries every half second. */
const PAUSE_MS = 600
/** Where somebody else is at it. */
const BUSY_MS = 2_000
/** After a failure. Reports have the hours meanwhile. */
const FAILED_MS = 30_000
/** Until it is looked whether a day is over. */
const IDLE_MS = 60_000

const taken = z.tuple([z.object({ taken: z.int().nullable() })])

export type Combining = {
  /** Combines a portion of the days that are over. How many names it took, at least 1 where there was a day. */
  readonly tick: () => Promise<number>
  /** Until the next one. */
  readonly pauseMs: () => number
}

/**
 * Adds up, by day, the sums of hours that combine two, of days that are over. Any worker may, and one does at a time. A portion that takes longer than a statement may
 * leaves everything as it was.
 */
export function createCombining(pool: pg.Pool, clock: Pick<Clock, 'monotonicMs'>): Combining {
  let most = AT_ONCE.first
  let pauseMs = PAUSE_MS
  return {
    async tick() {
      const startedMs = clock.monotonicMs()
      try {
        const { rows } = await pool.query('select combine_usage_days(most => $1) as taken', [most])
        const [{ taken: names }] = taken.parse(rows)
        const tookMs = clock.monotonicMs() - startedMs
        if (names === null) pauseMs = BUSY_MS
        else if (names === 0) pauseMs = IDLE_MS
        else {
          most = tookMs > QUICK_MS ? Math.max(1, Math.floor(most / 2)) : Math.min(AT_ONCE.most, most + GROWTH)
          pauseMs = PAUSE_MS + tookMs
        }
        return names ?? 0
      } catch (error) {
        pauseMs = FAILED_MS
        if (most === 1 || !wasCanceled(error)) throw error
        most = Math.max(1, Math.floor(most / 2))
        return 0
      }
    },
    pauseMs: () => pauseMs,
  }
}
