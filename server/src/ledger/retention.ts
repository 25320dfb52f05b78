import type pg from 'pg'
import { inPortions } from '../storage/in-portions.ts'
import type { Log } from '../telemetry/log.ts'

/** Summing up a day of charges takes far longer than whatever else its pool is for. */
const LONGEST_MS = 600_000
const ANSWER_MARGIN_MS = 1_000

/** Brief sums are as many as there are names: hours by end user and by tag, and all that combines them with something else. */
export const BRIEF_KEPT_DAYS = 100
/** Charges and sums of usage. */
export const CHARGES_KEPT_DAYS = 1_100
/** A report that was asked for a moment ago finds what it was promised. */
const MARGIN_DAYS = 1
const PORTION = 5_000

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

const TABLES = ['usage_sums', 'usage_totals'] as const

/**
 * Drops the sums that are to be kept no longer, some at a time: nobody waits for long, and who dies has done a part of it. Where a table fails,
 * the others are looked at all the same.
 */
export async function dropOldUsage(pool: pg.Pool, keepDays: number): Promise<number> {
  const briefDays = Math.min(keepDays, BRIEF_KEPT_DAYS + MARGIN_DAYS)
  const failures: unknown[] = []
  let all = 0
  for (const table of TABLES) {
    const dropping = inPortions(PORTION, async (most) => {
      const { rows } = await pool.query<{ dropped: number }>(
        `select drop_old_usage(of_table => $1, first_lasting => today - make_interval(days => $2), first_brief => today - make_interval(days => $3), most => $4) as dropped
         from date_trunc('day', clock_timestamp(), 'UTC') today`,
        [table, keepDays, briefDays, most],
      )
      return rows[0]?.dropped ?? 0
    })
    all += await dropping.catch((failure: unknown) => {
      failures.push(failure)
      return 0
    })
  }
  if (failures.length > 0) throw failures[0]
  return all
}
