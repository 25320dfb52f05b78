import type pg from 'pg'
import { inTransaction } from '../storage/transaction.ts'
import type { Log } from '../telemetry/log.ts'

const LONGEST_MS = 600_000

type Parts = { readonly pool: pg.Pool; readonly log: Log; readonly keepDays: number }

/** Drops the days of charges that are to be kept no longer, one after the other; their sums are carried forward. */
export async function dropOldCharges({ pool, log, keepDays }: Parts): Promise<void> {
  for (;;) {
    const day = await inTransaction(pool, async (query) => {
      await query(`set local statement_timeout = ${LONGEST_MS}`)
      const { rows } = await query(
        "select drop_charges_before((clock_timestamp() at time zone 'UTC')::date - $1::integer)::text as day",
        [keepDays],
      )
      return rows[0]?.day ?? null
    })
    if (day === null) return
    log.info('a day of charges was dropped', { reason: `older than ${keepDays} days: ${day}` })
  }
}
