import type pg from 'pg'
import { z } from 'zod'
import type { By } from '../storage/audit.ts'
import { inTransaction } from '../storage/transaction.ts'
import { revokeWithin } from './keys.ts'
import { lockKey } from './locked-key.ts'

const AT_A_TIME = 100
const ids = z.array(z.object({ id: z.string() }))

/**
 * Ends tickets whose time is over: they leave their place to other keys, and the audit log says so. No call begins after the end in any case, whoever has come here by then.
 */
export async function endTickets({ pool, by }: { readonly pool: pg.Pool; readonly by: By }): Promise<void> {
  const { rows } = await pool.query(
    'select id from api_keys where is_ticket and revoked_at is null and expires_at <= clock_timestamp() order by expires_at limit $1',
    [AT_A_TIME],
  )
  for (const { id } of ids.parse(rows))
    await inTransaction(pool, async (query) => {
      await lockKey(query, id)
      // It may have been lengthened, or ended, a moment ago.
      const { rows: over } = await query(
        'select from api_keys where id = $1 and revoked_at is null and expires_at <= clock_timestamp()',
        [id],
      )
      if (over.length === 1) await revokeWithin(query, by, id)
    })
}
