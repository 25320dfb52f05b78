import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'

const MOST = 1_000
const credentials = z.array(z.object({ id: z.string() }))

/** The keys and grants of an account, those that have ended too: their records stay. The newest where there are very many. */
export async function credentialsOfAccount(pool: pg.Pool, accountId: Id): Promise<readonly Id[]> {
  const { rows } = await pool.query({
    name: 'credentials_of_account',
    text: 'select id from credentials where account_id = $1 order by id desc limit $2',
    values: [accountId, MOST],
  })
  return credentials.parse(rows).map(({ id }) => id)
}
