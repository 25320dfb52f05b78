import type pg from 'pg'
import { recordVoided, type Voided, voidedRows } from '../calls/orphans.ts'
import { formatUsd, type Nanos } from '../kernel/money.ts'
import { type By, SERVICE } from '../storage/audit.ts'
import { inPortions } from '../storage/in-portions.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import type { Log } from '../telemetry/log.ts'

const AT_ONCE = 200

type Expiry = {
  readonly pool: pg.Pool
  readonly log: Log
  readonly lost?: (amount: Nanos) => void
  readonly by?: By
}

/** Ends tasks of which nothing final was heard for so long, at our loss. How many that were. */
export async function expireTasks(
  { pool, log, lost = () => {}, by = SERVICE }: Expiry,
  afterSeconds: number,
): Promise<number> {
  return inPortions(AT_ONCE, async (most) => {
    const expired = await inTransaction(pool, async (query) => {
      const tasks = await expire(query, afterSeconds, most)
      await recordVoided(query, by, tasks)
      return tasks
    })
    for (const { id, overrun } of expired) {
      lost(overrun)
      log.error('a task never ended: it is voided at our loss', { request_id: id, amount: formatUsd(overrun) })
    }
    return expired.length
  })
}

async function expire(query: Query, afterSeconds: number, most: number): Promise<readonly Voided[]> {
  const { rows } = await query(
    'select id, account_id, overrun from expire_tasks(after_seconds => $1, most => $2) join tasks using (id)',
    [afterSeconds, most],
  )
  return voidedRows.parse(rows)
}

/** Forgets tasks that ended so long ago, with what their callers wrote. How many that were. */
export async function forgetTasks(pool: pg.Pool, keptSeconds: number): Promise<number> {
  return inPortions(AT_ONCE, async (most) => {
    const { rowCount } = await pool.query(
      `delete from tasks where ctid = any (array(
         select ctid from tasks where ended_at < clock_timestamp() - make_interval(secs => $1) limit $2))`,
      [keptSeconds, most],
    )
    return rowCount ?? 0
  })
}
