import type pg from 'pg'
import { z } from 'zod'
import { formatUsd, type Nanos, nanos } from '../kernel/money.ts'
import { inPortions } from '../storage/in-portions.ts'
import type { Log } from '../telemetry/log.ts'

const AT_ONCE = 200

type Expiry = { readonly pool: pg.Pool; readonly log: Log; readonly lost?: (amount: Nanos) => void }

/** Ends tasks of which nothing final was heard for so long, at our loss. How many that were. */
export async function expireTasks({ pool, log, lost = () => {} }: Expiry, afterSeconds: number): Promise<number> {
  return inPortions(AT_ONCE, async (most) => {
    const { rows } = await pool.query('select id, overrun from expire_tasks(after_seconds => $1, most => $2)', [
      afterSeconds,
      most,
    ])
    for (const { id, overrun } of z.array(z.object({ id: z.string(), overrun: z.bigint() })).parse(rows)) {
      lost(nanos(overrun))
      log.error('a task never ended: it is voided at our loss', { request_id: id, amount: formatUsd(nanos(overrun)) })
    }
    return rows.length
  })
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
