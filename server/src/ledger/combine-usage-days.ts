import pg from 'pg'
import { z } from 'zod'

/** Names of keys; takes some tens of milliseconds, in which nobody adds up usage. */
const AT_ONCE = 1_000
const AT_ONCE_LEAST = 10
/** By how much a portion grows that was in time. */
const GROWTH = 20
/** Between two portions, so that whoever adds up usage gets at it. */
const PAUSE_MS = 100
/** Until it is looked whether a day is over. */
const IDLE_MS = 60_000
/** The statement took longer than a statement may. */
const CANCELED = '57014'

const taken = z.tuple([z.object({ taken: z.int().nullable() })])

export type Combining = {
  /** Combines a portion of the days that are over. How many names it took. */
  readonly tick: () => Promise<number>
  /** Until the next one. */
  readonly pauseMs: () => number
}

/**
 * Adds up, by day, the sums of hours that combine two, of days that are over. Any worker may, and one does at a time. A portion that takes too long leaves
 * everything as it was, and the next is half of it.
 */
export function createCombining(pool: pg.Pool): Combining {
  let most = AT_ONCE
  let pauseMs = PAUSE_MS
  return {
    async tick() {
      try {
        const { rows } = await pool.query('select combine_usage_days(most => $1) as taken', [most])
        const [{ taken: names }] = taken.parse(rows)
        pauseMs = names === 0 ? IDLE_MS : PAUSE_MS
        if (names !== null) most = Math.min(AT_ONCE, most + GROWTH)
        return names ?? 0
      } catch (error) {
        if (most === AT_ONCE_LEAST || !(error instanceof pg.DatabaseError) || error.code !== CANCELED) throw error
        most = Math.max(AT_ONCE_LEAST, Math.floor(most / 2))
        return 0
      }
    },
    pauseMs: () => pauseMs,
  }
}
