import type pg from 'pg'

const PRUNED_AT_ONCE = 5_000

/** Deletes kept claims that have expired; they are no longer counted, so nobody misses them. How many that were. */
export async function pruneClaims(pool: pg.Pool): Promise<number> {
  let all = 0
  for (;;) {
    const { rowCount } = await pool.query(
      'delete from claims where ctid = any (array(select ctid from claims where kept_until < clock_timestamp() limit $1))',
      [PRUNED_AT_ONCE],
    )
    all += rowCount ?? 0
    if ((rowCount ?? 0) < PRUNED_AT_ONCE) return all
  }
}

/** Forgets processes that ended a while ago and left nothing open. Calls of those that were forgotten too early are found. */
export async function forgetOwners(pool: pg.Pool, endedForSeconds: number): Promise<void> {
  await pool.query('select forget_owners(clock_timestamp() - make_interval(secs => $1))', [endedForSeconds])
}
