import type pg from 'pg'

/** Usage as it is booked, in the tail or in the sums of its hour, by credential and hour. */
export const BOOKED_HOURS = `(
  select credential_id, account_id, hour, requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged
  from usage_hours
  union all
  select credential_id, account_id, date_trunc('hour', at, 'UTC'), requests, failed_requests, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, value, charged
  from usage_tail)`

/** For tests that have moved charges and entries to other times: forgets all usage, and puts what the ledger has into the tail. */
export async function bookAnew(query: (text: string) => Promise<unknown>): Promise<void> {
  await query('begin')
  // Nobody may add it up meanwhile.
  await query('lock table usage_tail in access exclusive mode')
  for (const table of [
    'usage_hours',
    'usage_sums',
    'usage_days',
    'usage_hour_sums',
    'usage_combined_days',
    'usage_combined',
    'usage_tail',
  ])
    await query(`delete from ${table}`)
  await query(`
    insert into usage_tail (account_id, credential_id, at, operation, model, route, end_user, end_user_label, tags,
      requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select account_id, credential_id, ended_at, operation, model, route, end_user, end_user_label, tags,
      1, failed::integer, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, amount
    from charges where executed and credential_id is not null
    union all
    select account_id, credential_id, entered_at, operation, model, route, end_user, end_user_label, tags, 0, 0, 0, 0, 0, 0, 0, charged
    from entries where credential_id is not null and charged <> 0`)
  await query('commit')
}

/** How much usage is in no sum yet. */
export async function inTail(pool: Pick<pg.Pool, 'query'>): Promise<number> {
  const { rows } = await pool.query<{ count: number }>('select count(*)::integer as count from usage_tail')
  return rows[0]?.count ?? Number.NaN
}
