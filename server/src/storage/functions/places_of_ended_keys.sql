-- How many keys of an account, or how many spending grants of it, have ended and still have their place: until their last window is over, and their calls and tasks have
-- ended. And in how many seconds the first of them has none any more; null where that depends on what runs.
create or replace function places_of_ended_keys(of_workspace uuid, of_account uuid, window_seconds integer, are_grants boolean)
returns table (places integer, free_in_seconds integer)
language sql volatile as $$
  select count(*)::integer, min(ceil(case when not runs then seconds_left end))::integer
  from (
    -- Nothing runs for two days.
    select id from api_keys where not are_grants and workspace_id = of_workspace and revoked_at > now() - interval '2 days'
    union all
    select id from grants where are_grants and workspace_id = of_workspace and allowance_id is not null
      and least(revoked_at, expires_at) between now() - interval '2 days' and now()
  ) ended
  join credentials own using (id)
  cross join lateral (
    select coalesce(extract(epoch from own.all_started_at + make_interval(secs => window_seconds) - clock_timestamp()), 0) as seconds_left,
      own.calls_at_once > 0 or exists (select from claims where credential_id = own.id and scope = 'tasks' and kept_until is null) as runs
  ) last
  where own.account_id = of_account and (seconds_left > 0 or runs)
$$;
