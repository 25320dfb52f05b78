import type pg from 'pg'
import { z } from 'zod'
import { capped, type Nanos } from '../kernel/money.ts'

const DAY_MS = 86_400_000
/** A call that nobody resolved ends a day after it began, or somewhat later. */
const BEGUN_WITHIN_MS = 3 * DAY_MS

/** What calls that ended in the last day cost beyond what they were charged, on evidence or not. */
export async function overrunOfLastDay(pool: pg.Pool, nowMs: number): Promise<Nanos> {
  const { rows } = await pool.query(
    `select coalesce(sum(overrun), 0)::text as overrun from charges
     where id >= first_id_at($1) and ended_at > $2 and overrun > 0`,
    [new Date(nowMs - BEGUN_WITHIN_MS), new Date(nowMs - DAY_MS)],
  )
  return capped(BigInt(z.array(z.object({ overrun: z.string() })).parse(rows)[0]?.overrun ?? 0))
}
