import type pg from 'pg'
import { z } from 'zod'

/** The channel of the hint; migrations/0001_change_log.sql sends it. */
export const CHANGES_CHANNEL = 'farebox_changes'

const changeRow = z
  .object({
    id: z.bigint(),
    transaction_id: z.bigint(),
    topic: z.string(),
    key: z.string(),
    changed_at_micros: z.bigint(),
    horizon: z.bigint(),
  })
  .transform((row) => ({
    id: row.id,
    transactionId: row.transaction_id,
    topic: row.topic,
    key: row.key,
    /** Tells this row from any other, one that took its numbers after a failover lost it included. */
    mark: `${row.transaction_id}/${row.id}/${row.changed_at_micros}`,
    /** Every transaction below it had ended when this row was read: nothing can be added to the log before there. */
    horizon: row.horizon,
  }))

export type Change = z.output<typeof changeRow>

const COLUMNS = `id, transaction_id, topic, key, (extract(epoch from changed_at) * 1000000)::bigint as changed_at_micros,
  pg_snapshot_xmin(pg_current_snapshot()) as horizon`

/**
 * Up to `limit` changes that are committed, in order, beginning with the one at this place. Rows that a dump brought from
 * another cluster can have transaction ids that are still to come here; they are not changes of this one.
 */
export async function readChanges(client: pg.ClientBase, from: Change, limit: number): Promise<readonly Change[]> {
  const { rows } = await client.query({
    name: 'read_changes',
    text: `select ${COLUMNS} from change_log
      where (transaction_id, id) >= ($1::xid8, $2::bigint)
        and transaction_id < pg_snapshot_xmax(pg_current_snapshot())
      order by transaction_id, id limit $3`,
    values: [from.transactionId, from.id, limit],
  })
  return z.array(changeRow).parse(rows)
}

/** The last change below the horizon. */
export async function readNewestChange(client: pg.ClientBase): Promise<Change | undefined> {
  const { rows } = await client.query(
    `select ${COLUMNS} from change_log
     where transaction_id < pg_snapshot_xmin(pg_current_snapshot())
     order by transaction_id desc, id desc limit 1`,
  )
  return z.array(changeRow).parse(rows)[0]
}

const PRUNE_ROWS = 10_000

/**
 * Deletes old changes from the beginning of the log, up to the first that is young enough, and says how many. Readers
 * notice that they missed some because their own place is gone; so nothing may be deleted from the middle, and the last
 * row below the horizon, where readers that missed nothing are, stays however old it is.
 */
export async function pruneChanges(pool: pg.Pool, { olderThanMs }: { readonly olderThanMs: number }): Promise<number> {
  let pruned = 0
  for (;;) {
    const { rowCount } = await pool.query(
      `with newest as (
         select transaction_id, id from change_log
         where transaction_id < pg_snapshot_xmin(pg_current_snapshot())
         order by transaction_id desc, id desc limit 1
       ), young as (
         select transaction_id, id from change_log
         where changed_at >= clock_timestamp() - make_interval(secs => $1::double precision / 1000)
         order by transaction_id, id limit 1
       )
       delete from change_log where id in (
         select change_log.id from newest left join young on true, change_log
         where (change_log.transaction_id, change_log.id) < (newest.transaction_id, newest.id)
           and (young.id is null or (change_log.transaction_id, change_log.id) < (young.transaction_id, young.id))
         order by change_log.transaction_id, change_log.id limit $2
       )`,
      [olderThanMs, PRUNE_ROWS],
    )
    pruned += rowCount ?? 0
    if ((rowCount ?? 0) < PRUNE_ROWS) return pruned
  }
}
