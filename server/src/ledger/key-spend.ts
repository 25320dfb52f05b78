import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, nanos } from '../kernel/money.ts'

export type KeySpend = { readonly week: Nanos; readonly month: Nanos; readonly total: Nanos }

const amount = z.bigint().transform((value): Nanos => nanos(value))
const spends = z.array(z.object({ credential_id: z.string(), week: amount, month: amount, total: amount }))

/** What credentials were charged in the last seven days, to the hour, since the beginning of the month (UTC), and in all that is kept; those that spent nothing are left out. */
export async function spendOfKeys(pool: pg.Pool, ids: readonly Id[]): Promise<ReadonlyMap<Id, KeySpend>> {
  const { rows } = await pool.query(
    `select credential_id, sum(charged)::bigint as total,
       coalesce(sum(charged) filter (where at > clock_timestamp() - interval '7 days'), 0)::bigint as week,
       coalesce(sum(charged) filter (where at >= period_start('month', clock_timestamp())), 0)::bigint as month
     from (
       select scope_id as credential_id, starts_at as at, charged from usage_totals
       where scope_id = any ($1) and about = '' and grain = 'hour' and subject = ''
       union all select credential_id, at, charged from usage_tail where credential_id = any ($1)
     ) used group by credential_id`,
    [ids],
  )
  return new Map(spends.parse(rows).map(({ credential_id: id, ...spend }) => [id, spend]))
}
