import type pg from 'pg'
import { tellProgress } from '../../harness/proof.ts'

/** Usage as it is booked, in the tail or in the sums of its hour, by credential and hour. */
export const BOOKED_HOURS = `(
  select scope_id as credential_id, account_id, starts_at as hour, requests, failed_requests, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, value, charged
  from usage_totals where about = '' and grain = 'hour' and scope_id <> account_id
  union all
  select credential_id, account_id, date_trunc('hour', at, 'UTC'), requests, failed_requests, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, value, charged
  from usage_tail)`

/** For tests that have moved charges and entries to other times: forgets all usage, and puts what the ledger has into the tail. */
export async function bookAnew(query: (text: string) => Promise<unknown>): Promise<void> {
  await query('begin')
  // Nobody may add it up meanwhile.
  await query('lock table usage_tail in access exclusive mode')
  for (const table of ['usage_totals', 'usage_sums', 'usage_combined', 'usage_tail'])
    await query(`delete from ${table}`)
  await query(`
    insert into usage_tail (account_id, credential_id, at, operation, model, end_user, end_user_label, tags,
      requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select account_id, credential_id, ended_at, operation, model, end_user, end_user_label, tags,
      1, failed::integer, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, amount
    from charges where executed and credential_id is not null
    union all
    select account_id, credential_id, entered_at, operation, model, end_user, end_user_label, tags, 0, 0, 0, 0, 0, 0, 0, charged
    from entries where credential_id is not null and charged <> 0`)
  await query('commit')
}

/** Adds up all, as much at once as no process does: so many sums are sorted in memory. */
export async function addUpAtOnce(client: Pick<pg.Client, 'query'>): Promise<void> {
  await client.query("set work_mem = '512MB'")
  for (let added = 1; added > 0; ) {
    const { rows } = await client.query<{ added: number }>('select add_up_usage(most => 200000) as added')
    added = rows[0]?.added ?? 0
    tellProgress(`${added} rows of usage were added up`)
  }
  await client.query('reset work_mem')
}

/** How much usage is in no sum yet. */
export async function inTail(pool: Pick<pg.Pool, 'query'>): Promise<number> {
  const { rows } = await pool.query<{ count: number }>('select count(*)::integer as count from usage_tail')
  return rows[0]?.count ?? Number.NaN
}
