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
  })
  .transform((row) => ({
    id: row.id,
    transactionId: row.transaction_id,
    topic: row.topic,
    key: row.key,
    /** Tells this row from any other, one that took its numbers after a failover lost it included. */
    mark: `${row.transaction_id}/${row.id}/${row.changed_at_micros}`,
  }))

const changeRows = z.array(changeRow)

export type Change = z.output<typeof changeRow>

/** As PostgreSQL writes a snapshot: `horizon:next:running,…`. */
const snapshotRow = z.object({ snapshot: z.string().regex(/^\d+:\d+:[\d,]*$/) }).transform(({ snapshot }) => {
  const [horizon = '', , running = ''] = snapshot.split(':')
  return {
    /** Every transaction below it had ended: nothing can be added to the log before there. */
    horizon: BigInt(horizon),
    /** The transactions that had begun and not ended. */
    running: running === '' ? [] : running.split(',').map(BigInt),
  }
})

/** Which transactions had ended when something was read. */
export type Snapshot = z.output<typeof snapshotRow>

const COLUMNS =
  'id, transaction_id, topic, key, (extract(epoch from changed_at) * 1000000)::bigint as changed_at_micros'

type Page = { readonly changes: readonly Change[]; readonly snapshot: Snapshot }

/**
 * Up to `limit` changes that are committed, in order, after the one at this place; undefined when that one is gone.
 * Rows that a dump brought from another cluster can have transaction ids that are still to come here; they are not
 * changes of this one.
 */
export async function readChangesAfter(client: pg.ClientBase, place: Change, limit: number): Promise<Page | undefined> {
  const { rows } = await client.query({
    name: 'read_changes_after',
    text: `select ${COLUMNS}, case when id = $2 then pg_current_snapshot()::text end as snapshot from change_log
      where (transaction_id, id) >= ($1::xid8, $2::bigint)
        and transaction_id < pg_snapshot_xmax(pg_current_snapshot())
      order by transaction_id, id limit $3`,
    values: [place.transactionId, place.id, limit + 1],
  })
  const [first, ...changes] = changeRows.parse(rows)
  if (first?.mark !== place.mark) return undefined
  return { changes, snapshot: snapshotRow.parse(rows[0]) }
}

/** Up to `limit` changes of these transactions, in order. */
export async function readChangesOf(
  client: pg.ClientBase,
  transactionIds: readonly bigint[],
  limit: number,
): Promise<readonly Change[]> {
  const { rows } = await client.query({
    name: 'read_changes_of',
    text: `select ${COLUMNS} from change_log where transaction_id = any ($1::xid8[])
      order by transaction_id, id limit $2`,
    values: [transactionIds, limit],
  })
  return changeRows.parse(rows)
}

export async function isInLog(client: pg.ClientBase, change: Change): Promise<boolean> {
  const { rows } = await client.query({
    name: 'read_change',
    text: `select ${COLUMNS} from change_log where (transaction_id, id) = ($1::xid8, $2::bigint)`,
    values: [change.transactionId, change.id],
  })
  return changeRows.parse(rows)[0]?.mark === change.mark
}

/** The last change of the log, and what had ended when it was that. */
export async function readLastChange(
  client: pg.ClientBase,
): Promise<{ readonly last: Change; readonly snapshot: Snapshot } | undefined> {
  const { rows } = await client.query(
    `select ${COLUMNS}, pg_current_snapshot()::text as snapshot from change_log
     where transaction_id < pg_snapshot_xmax(pg_current_snapshot())
     order by transaction_id desc, id desc limit 1`,
  )
  const [last] = z.array(changeRow).parse(rows)
  return last && { last, snapshot: snapshotRow.parse(rows[0]) }
}

export async function readLastChangeBefore(client: pg.ClientBase, transactionId: bigint): Promise<Change | undefined> {
  const { rows } = await client.query(
    `select ${COLUMNS} from change_log where transaction_id < $1::xid8
     order by transaction_id desc, id desc limit 1`,
    [transactionId],
  )
  return z.array(changeRow).parse(rows)[0]
}

const PRUNE_ROWS = 10_000

/**
 * Deletes old changes from the beginning of the log, up to the first that is young enough, and says how many. Readers
 * notice that they missed some because the row where they are is gone; so nothing may be deleted from the middle, and
 * the last row below the horizon, the first where a reader that missed nothing can be, stays however old it is.
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
