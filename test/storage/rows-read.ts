import pg from 'pg'
import { z } from 'zod'

const counted = z.tuple([z.object({ count: z.coerce.number() })])

/** How many rows of a table PostgreSQL reads for a piece of work, over one connection, whichever way it takes. */
export async function rowsRead(url: string, table: string, work: (pool: pg.Pool) => Promise<unknown>): Promise<number> {
  // One connection, since each tells of its own reading when it is asked to.
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  // The database may be dropped before PostgreSQL has seen the end of a connection, and says so to whoever still listens.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const count = async () => {
    await pool.query('select pg_stat_force_next_flush()')
    const { rows } = await pool.query(
      'select seq_tup_read + coalesce(idx_tup_fetch, 0) as count from pg_stat_user_tables where relname = $1',
      [table],
    )
    return counted.parse(rows)[0].count
  }
  try {
    // Plans are made by what there is, as they are where a table is large.
    await pool.query(`analyze ${pg.escapeIdentifier(table)}`)
    const before = await count()
    await work(pool)
    return (await count()) - before
  } finally {
    await pool.end()
  }
}
