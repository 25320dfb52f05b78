import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, nanos } from '../kernel/money.ts'

/**
 * What changed the balance of an account: payments, credit and corrections one by one, and what calls were charged by the day. A line is what
 * was added or taken; they add up from the balance at the beginning to the one at the end, to the nano. What is held is not spent yet.
 */
export type Statement = {
  readonly opening: Nanos
  readonly closing: Nanos
  readonly lines: readonly StatementLine[]
}

export type StatementPage = {
  readonly accountId: Id
  /** The first moment of a day of UTC. */
  readonly from: Date
  /** The first moment of the day behind the last. */
  readonly to: Date
  readonly after?: StatementPosition | undefined
  readonly most: number
}

export type StatementPosition = { readonly atUs: bigint; readonly id: string }

const amount = z.bigint().transform((value): Nanos => nanos(value))
const line = z.object({
  id: z.string(),
  kind: z.string(),
  at: z.date(),
  at_us: z.bigint(),
  amount,
  /** The call that a refund is of. */
  request_id: z.string().nullable(),
  /** By which who paid knows it, such as the number of a transfer. */
  reference: z.string().nullable(),
})
export type StatementLine = z.output<typeof line>

const row = z.object({ opening: amount, closing: amount, id: z.string().nullable() })

/** Not what a call gives back by itself, because its caller got nothing: that has the id of its call. */
const IS_REFUND = 'corrects <> id and charged <> 0'

/** Of one state of the ledger: what a call is charged is noted with its charge, so that all lines add up. A day of usage stands at its beginning. */
export function statementQuery({ accountId, from, to, after, most }: StatementPage) {
  const values: unknown[] = [accountId, from, to, most]
  const beyond =
    after === undefined
      ? ''
      : `and (at, id) < ('epoch'::timestamptz + $${values.push(after.atUs)}::bigint * interval '1 microsecond', $${values.push(after.id)}::text)`
  const text = `with account as (select credited + debt - charged as balance from accounts where id = $1),
    used as (
      select starts_at as at, charged from usage_totals
      where scope_id = $1 and about = '' and grain = 'day' and subject = '' and starts_at >= $2
      union all select at, charged from usage_tail where account_id = $1 and at >= $2
      -- A refund is in the usage of its hour, and stands here by itself.
      union all select entered_at, -charged from entries where account_id = $1 and entered_at >= $2 and ${IS_REFUND}
    ),
    lines as materialized (
      select id::text as id, kind, entered_at as at, amount, case when ${IS_REFUND} then corrects end as corrects, reference
      from entries cross join lateral (select credited + debt - case when ${IS_REFUND} then charged else 0 end as amount) changed
        left join entry_notes on entry_id = id
      where account_id = $1 and entered_at >= $2 and amount <> 0
      union all
      select 'usage-' || to_char(day at time zone 'UTC', 'YYYY-MM-DD'), 'usage', day, -sum(charged), null, null
      from used cross join lateral date_trunc('day', used.at, 'UTC') day group by day having sum(charged) <> 0
    ),
    sums as (
      select coalesce(sum(amount) filter (where at >= $3), 0) as later, coalesce(sum(amount) filter (where at < $3), 0) as within from lines
    )
    select (balance - later)::bigint as closing, (balance - later - within)::bigint as opening, shown.id, shown.kind, shown.at,
      (extract(epoch from shown.at) * 1000000)::bigint as at_us, shown.amount::bigint as amount, shown.corrects as request_id, shown.reference
    from account cross join sums
    left join lateral (select * from lines where at < $3 ${beyond} order by at desc, id desc limit $4) shown on true
    order by shown.at desc, shown.id desc`
  return { text, values }
}

export async function readStatement(pool: pg.Pool, page: StatementPage): Promise<Statement> {
  const { rows } = await pool.query(statementQuery(page))
  const { opening, closing } = row.parse(rows[0])
  return { opening, closing, lines: z.array(line).parse(rows.filter(({ id }) => id !== null)) }
}
