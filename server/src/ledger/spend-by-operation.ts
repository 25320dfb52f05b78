import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, nanos } from '../kernel/money.ts'

const rows = z.array(
  z.object({
    operation: z.string(),
    calls: z.int(),
    charged: z.bigint().transform((value): Nanos => nanos(value)),
  }),
)

export type OperationSpend = z.output<typeof rows>[number]

const OPERATIONS_SHOWN = 100
/** A call ends within days of the time that its id carries. */
const DAYS_APART = 8

/** What a credential was charged for since some moment, less what was given back; the most first. */
export async function spendByOperation(
  pool: pg.Pool,
  credentialId: Id,
  since: Date,
): Promise<readonly OperationSpend[]> {
  // It has no name, so that it is planned for its values: only the days that it asks for are opened.
  const { rows: found } = await pool.query({
    text: `with given_back as (
        select corrects, sum(charged) as charged from entries where credential_id = $1 and corrects is not null group by corrects
      )
      select c.operation, count(*)::integer as calls, sum(c.amount + coalesce(g.charged, 0))::bigint as charged
      from charges c left join given_back g on g.corrects = c.id
      where c.credential_id = $1 and c.executed and c.operation is not null
        and c.ended_at >= $2 and c.id >= first_id_at($2::timestamptz - make_interval(days => $3))
      group by c.operation order by 3 desc, 1 limit $4`,
    values: [credentialId, since, DAYS_APART, OPERATIONS_SHOWN],
  })
  return rows.parse(found)
}
