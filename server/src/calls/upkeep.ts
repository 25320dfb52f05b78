import type pg from 'pg'
import { inPortions } from '../storage/in-portions.ts'

const PRUNED_AT_ONCE = 5_000

/** Deletes kept claims that have expired; they are no longer counted, so nobody misses them. How many that were. */
export async function pruneClaims(pool: pg.Pool): Promise<number> {
  return inPortions(PRUNED_AT_ONCE, async (most) => {
    const { rowCount } = await pool.query(
      'delete from claims where ctid = any (array(select ctid from claims where kept_until < clock_timestamp() limit $1))',
      [most],
    )
    return rowCount ?? 0
  })
}

/** Forgets processes that ended a while ago and left nothing open. Calls of those that were forgotten too early are found. */
export async function forgetOwners(pool: pg.Pool, endedForSeconds: number): Promise<void> {
  await pool.query('select forget_owners(ended_before => clock_timestamp() - make_interval(secs => $1))', [
    endedForSeconds,
  ])
}
