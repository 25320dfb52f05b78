import type pg from 'pg'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { makeKey } from '../acceptance/installation.ts'

/** Names as long as they may get where people make them up. */
export const LONG_NAME = 'nightly-jobs-for-the-quarterly-report-of-the-harbour-with-eighty-characters-here'
const KEYS = 40

type Busy = {
  readonly workspaceId: string
  readonly accountId: string
  /** A call that has ended, as which the others are made. */
  readonly callId: string
  readonly requests: number
}

/** A workspace with 40 keys and very many calls of this month, made by SQL from one that was made, with the sums that they add up to. */
export async function makeBusy(pool: pg.Pool, { workspaceId, accountId, callId, requests }: Busy): Promise<void> {
  for (let at = 1; at <= KEYS; at += 1)
    await makeKey(pool, workspaceId, { name: at === 1 ? LONG_NAME : `key ${String(at).padStart(2, '0')}` })
  await pool.query(
    `select make_charge_partition(day::date) from generate_series((now() at time zone 'UTC')::date - 25, (now() at time zone 'UTC')::date + 1, interval '1 day') day`,
  )
  await pool.query(
    `with model as (select * from charges where id = $2),
       key as (select id, row_number() over (order by id) - 1 as place from credentials where account_id = $1),
       made as (select n, clock_timestamp() - interval '2 seconds' - n * interval '20 days' / $3::integer as at from generate_series(1, $3::integer) n)
     insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
       input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at, model, route, end_user, end_user_label, tags)
     select (lpad(to_hex(floor(extract(epoch from made.at) * 1000)::bigint), 12, '0') || '7' || substr(md5(made.n::text), 1, 3) || '8' || substr(md5(made.n::text), 5, 15))::uuid,
       $1, key.id, case made.n % 5 when 0 then 'rerank' when 1 then 'messages' when 2 then 'post_comments' else 'chat_completions' end,
       case when made.n % 29 = 0 then 'voided' else 'posted' end, 622500, case when made.n % 29 = 0 then 0 else 1000 * (made.n % 290) end, 0, 0,
       1000 * (made.n % 290), 0, made.n % 29 <> 0, made.n % 29 = 0, 19, 140, 0, 0, '{}', made.at - (5 + made.n % 400) * interval '1 millisecond', made.at,
       case when made.n % 10007 = 0 then 'rare' when made.n % 7 = 0 then 'sandbox/text-with-a-long-name-and-a-date-that-is-eighty-characters-in-all-2026-11' else 'sandbox/text' end,
       'openai', null, null, case when made.n % 3 = 0 then array['team=search', 'run=' || made.n % 9] else array['team=harbour'] end
     from made cross join model join key on key.place = made.n % (select count(*) from key)`,
    [accountId, callId, requests],
  )
  await pool.query(
    `insert into usage_tail (credential_id, at, account_id, operation, model, tags, requests, failed_requests, input_tokens, output_tokens, cache_read_tokens,
       cache_write_tokens, value, charged)
     select credential_id, date_trunc('hour', ended_at, 'UTC'), account_id, operation, model, tags, count(*), count(*) filter (where failed), sum(input_tokens),
       sum(output_tokens), 0, 0, sum(value), sum(amount)
     from charges where account_id = $1 and id <> $2 group by 1, 2, 3, 4, 5, 6`,
    [accountId, callId],
  )
  await addUpUsage(pool)
  await pool.query(
    `update accounts set created_at = created_at - interval '25 days', credited = credited + 100000000000,
       charged = charged + (select sum(amount) from charges where account_id = $1 and id <> $2) where id = $1`,
    [accountId, callId],
  )
  await pool.query('analyze charges, usage_totals, usage_sums, usage_tail, credentials, api_keys')
}
