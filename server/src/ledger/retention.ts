import type pg from 'pg'
import type { Log } from '../telemetry/log.ts'

/** Summing up a day of charges takes far longer than whatever else its pool is for. */
const LONGEST_MS = 600_000
const ANSWER_MARGIN_MS = 1_000

type Parts = { readonly pool: pg.Pool; readonly log: Log; readonly keepDays: number }

/** Drops the days of charges that are to be kept no longer, one after the other; their sums are carried forward. */
export async function dropOldCharges({ pool, log, keepDays }: Parts): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query(`set statement_timeout = ${LONGEST_MS}`)
    for (;;) {
      const day = await dropOldest(client, keepDays)
      if (day === null) return
      log.info('a day of charges was dropped', { reason: `older than ${keepDays} days: ${day}` })
    }
  } finally {
    // The connection is of no use to others: its statements may take so long.
    client.release(true)
  }
}

/**
 * A transaction of one statement, which PostgreSQL commits by itself: its lock keeps every settlement waiting, so its end
 * must not depend on us, who may be slow or gone.
 */
async function dropOldest(client: pg.PoolClient, keepDays: number): Promise<string | null> {
  const statement = {
    text: "select drop_charges_before(first_kept => (clock_timestamp() at time zone 'UTC')::date - $1::integer)::text as day",
    values: [keepDays],
    query_timeout: LONGEST_MS + ANSWER_MARGIN_MS,
  }
  const { rows } = await client.query<{ day: string | null }>(statement)
  return rows[0]?.day ?? null
}
