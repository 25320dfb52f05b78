import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { inPortions } from '../storage/in-portions.ts'

/**
 * Takes the labels of end users out of what an account was charged, in portions, each of which can be done again. An end user stays apart from
 * others by an id, which is a hash. Nothing of money changes, and no row goes.
 */
export async function eraseLabels(pool: pg.Pool, accountId: Id): Promise<void> {
  await eraseInCharges(pool, accountId)
  for (const statement of OTHERS)
    await inPortions(PORTION, async (most) => (await pool.query(statement, [accountId, most])).rowCount ?? 0)
}

const PORTION = 2_000

/** Each changes at most $2 rows of the account $1. What is waiting to be added up is added up without a label then. */
const OTHERS = [
  `update usage_tail set end_user_label = null where ctid = any (array(
     select ctid from usage_tail where account_id = $1 and end_user_label is not null limit $2 for update skip locked))`,
  `update entries set end_user_label = null where id in (
     select id from entries where account_id = $1 and end_user_label is not null limit $2)`,
  `update usage_sums set subject_label = null where ctid = any (array(
     select ctid from usage_sums where account_id = $1 and about = 'end_user' and subject_label is not null limit $2 for update))`,
  `update usage_days set label = null where ctid = any (array(
     select day.ctid from (select id from credentials where account_id = $1 union all select $1) scope (id)
     join usage_days day on day.scope_id = scope.id and day.about = 'end_user' where day.label is not null limit $2 for update of day))`,
]

const chargeRow = z.object({ id: z.string(), has_label: z.boolean(), ended_us: z.bigint() })

/** Walked in the order of an index: looked for from the beginning each time, the last portions would read all that is done. */
async function eraseInCharges(pool: pg.Pool, accountId: Id): Promise<void> {
  let [endedUs, last]: readonly [bigint, Id] = [0n, '00000000-0000-0000-0000-000000000000']
  for (;;) {
    const { rows } = await pool.query(
      `select id, end_user_label is not null as has_label, (extract(epoch from ended_at) * 1000000)::bigint as ended_us from charges
       where account_id = $1 and (ended_at, id) > ('epoch'::timestamptz + $2::bigint * interval '1 microsecond', $3::uuid)
       order by ended_at, id limit $4`,
      [accountId, endedUs, last, PORTION],
    )
    const found = z.array(chargeRow).parse(rows)
    const labelled = found.flatMap(({ id, has_label: hasLabel }) => (hasLabel ? [id] : []))
    // It is planned for its values: only the days of these ids are opened.
    if (labelled.length > 0)
      await pool.query('update charges set end_user_label = null where id = any ($1)', [labelled])
    const end = found.at(-1)
    if (end === undefined || found.length < PORTION) return
    endedUs = end.ended_us
    last = end.id
  }
}
