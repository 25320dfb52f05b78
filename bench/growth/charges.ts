import type pg from 'pg'

const AT_ONCE = 50_000

/** Charges that calls of the last hours would have left, spread over the callers that there are. As rows: ten million calls take an hour. */
export async function storeCharges(pool: pg.Pool, count: number): Promise<void> {
  for (let done = 0; done < count; done += AT_ONCE) await pool.query(STORE, [Math.min(AT_ONCE, count - done)])
  await pool.query('analyze charges')
}

/** Their ids carry times of the last minutes, so that they lie where new charges do. */
const STORE = `
  with callers as materialized (
    select row_number() over () as place, id, account_id from (select id, account_id from credentials limit 10000) one
  ), counted as (
    select count(*) as callers from callers
  )
  insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost,
    executed, failed, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at)
  select (substr(first_id_at(at)::text, 1, 14) || '7' || substr(gen_random_uuid()::text, 16))::uuid,
    callers.account_id, callers.id, 'chat_completions', 'posted', 1500000, 390000, 0, 0, 390000, 0,
    true, false, 180, 150, 0, 0, '{}', at, at
  from generate_series(1, $1::integer) item
  cross join lateral (select clock_timestamp() - random() * interval '5 minutes' as at) moment
  join callers on callers.place = 1 + item % (select counted.callers from counted)`
