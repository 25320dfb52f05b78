import type pg from 'pg'
import { type Overdue, voidAtOurLoss } from '../calls/orphans.ts'
import { inPortions } from '../storage/in-portions.ts'

const AT_ONCE = 200

/** Ends tasks of which nothing final was heard for so long, at our loss. How many that were. */
export function expireTasks(parts: Overdue, afterSeconds: number): Promise<number> {
  const sql = 'select id, account_id, overrun from expire_tasks(after_seconds => $1, most => $2) join tasks using (id)'
  return voidAtOurLoss(parts, afterSeconds, sql, 'a task never ended: it is voided at our loss')
}

/** Ends tasks that their upstream has said for so long not to know, at our loss. How many that were. */
export function expireUnknownTasks(parts: Overdue, afterSeconds: number): Promise<number> {
  const sql =
    'select id, account_id, overrun from expire_unknown_tasks(after_seconds => $1, most => $2) join tasks using (id)'
  return voidAtOurLoss(parts, afterSeconds, sql, 'the provider no longer knows a task: it is voided at our loss')
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
