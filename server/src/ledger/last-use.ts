import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'

const rows = z.array(z.object({ id: z.string(), ended_at: z.date() }))

/** A call ends within days of the time that its id carries; other days' charges are not looked at. */
const DAYS_APART = 8

/** When calls of credentials last ended, within so many days; those without any are left out. */
export async function lastUseOf(pool: pg.Pool, ids: readonly Id[], days: number): Promise<ReadonlyMap<Id, Date>> {
  const { rows: found } = await pool.query({
    text: `select used.id, latest.ended_at from unnest($1::uuid[]) used (id) cross join lateral (
        select ended_at from charges where credential_id = used.id and ended_at >= statement_timestamp() - make_interval(days => $2)
          and id >= first_id_at(statement_timestamp() - make_interval(days => $3))
        order by ended_at desc limit 1) latest`,
    values: [ids, days, days + DAYS_APART],
  })
  return new Map(rows.parse(found).map(({ id, ended_at: endedAt }) => [id, endedAt]))
}
