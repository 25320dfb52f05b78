/** Of the statements that begin and end calls, what more than one patch looks for. This is where calls are begun. */
export const BEGINNING = 'server/src/storage/migrations/0027_attribution.sql'
/** Where calls are ended, charges given back, days of them dropped, and usage added up. */
export const STATEMENTS = 'server/src/storage/migrations/0027_attribution.sql'
/** Where the hold of a call grows. */
export const GROWING = 'server/src/storage/migrations/0025_growing_holds.sql'
/** Where calls of dead processes are found. */
export const SWEEPING = 'server/src/storage/migrations/0015_calls_of_owners.sql'

/** Before the accounts of a batch are locked. */
export const START_OF_BEGIN = `  window_from integer := 1; allowance_from integer := 1; set_from integer := 1;
begin
`
export const START_OF_END = `  account integer; freed bigint; allowance uuid; token_group text;
begin
`
export const WINDOWS_READ = `  if cardinality(window_groups) = 1 then
    select array[started_at], array[requests], array[tokens] into window_started, window_requests, window_tokens from windows
    where credential_id = window_credentials[1] and limit_group = window_groups[1]
      and started_at + make_interval(secs => window_seconds[1]) > at;
    if not found then window_requests := array[0]; window_tokens := array[0]; end if;
  elsif cardinality(window_groups) > 1 then
    select array_agg(row.started_at), array_agg(coalesce(row.requests, 0)), array_agg(coalesce(row.tokens, 0))
    into window_started, window_requests, window_tokens
    from unnest(window_groups) with ordinality item (limit_group, place)
    left join lateral (
      select started_at, requests, tokens from windows
      where credential_id = window_credentials[place] and limit_group = item.limit_group
        and started_at + make_interval(secs => window_seconds[place]) > at
      limit 1
    ) row on true;
  end if;
  requests_before := window_requests;
`
export const LOOK_UP_OF_IDS = `  if true = any (call_holds) and (exists (select from holds where id = any (call_ids)) or has_ended(call_ids, call_days)) then
    call_known := array(
      select case
        when hold.account_id = accounts_in[call_accounts[place]] then 'begun'
        when hold.account_id is not null or item.id = any (ended.ids) then 'ended' end
      from (select array(select id from ended_among(call_ids, call_days)) as ids) ended
      cross join unnest(call_ids) with ordinality item (id, place)
      left join lateral (select account_id from holds where id = item.id limit 1) hold on true
    );
  end if;
`

/** An account is changed by charges of calls that have no hold any more, too. */
export const CHANGED_WITHOUT_A_HOLD = [
  {
    file: STATEMENTS,
    find: 'where row.ctid = account_rows[1] and account_release[1] > 0;',
    replace: 'where row.ctid = account_rows[1] and account_release[1] + account_charge[1] > 0;',
  },
  {
    file: STATEMENTS,
    find: 'where row.ctid = item.ctid and account_release[place] > 0;',
    replace: 'where row.ctid = item.ctid and account_release[place] + account_charge[place] > 0;',
  },
]
