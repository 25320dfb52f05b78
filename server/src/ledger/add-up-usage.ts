import type pg from 'pg'
import { z } from 'zod'
import { inPortions } from '../storage/in-portions.ts'

/** Takes some tens of milliseconds, in which nobody waits for it. */
const AT_ONCE = 5_000

const added = z.tuple([z.object({ added: z.int().nullable() })])

/**
 * Adds usage to the sums that reports are made of. Any process may, and one does at a time: whoever finds another at it leaves it the work.
 * How many rows this one added.
 */
export function addUpUsage(pool: pg.Pool): Promise<number> {
  return inPortions(AT_ONCE, async (most) => {
    const { rows } = await pool.query('select add_up_usage(most => $1) as added', [most])
    return added.parse(rows)[0].added ?? 0
  })
}
