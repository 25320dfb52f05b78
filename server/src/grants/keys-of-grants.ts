import type pg from 'pg'
import { z } from 'zod'
import { revokeWithin } from '../identity/keys.ts'
import type { Id } from '../kernel/ids.ts'
import type { By } from '../storage/audit.ts'
import type { Query } from '../storage/transaction.ts'

/** Keys whose secret the client of a grant was told, because it created or rotated them. They outlive the grant, unless who ends it says otherwise. */

const idRow = z.object({ id: z.string() })

/** In the transaction that ends the grant: keys and grant are of one account, which that has locked. */
export async function revokeKeysOfGrant(query: Query, by: By, grantId: Id): Promise<void> {
  const { rows } = await query('select id from api_keys where grant_id = $1 and revoked_at is null order by id', [
    grantId,
  ])
  for (const { id } of z.array(idRow).parse(rows)) await revokeWithin(query, by, id)
}

const countRow = z.object({ id: z.string(), keys: z.int() })

/** How many of each work still. */
export async function countKeysOfGrants(pool: pg.Pool, grantIds: readonly Id[]): Promise<ReadonlyMap<Id, number>> {
  const { rows } = await pool.query(
    `select grant_id as id, count(*)::integer as keys from api_keys
     where grant_id = any ($1::uuid[]) and revoked_at is null group by grant_id`,
    [grantIds],
  )
  return new Map(
    z
      .array(countRow)
      .parse(rows)
      .map(({ id, keys }) => [id, keys]),
  )
}
