-- Keeps calls that a process has refused, at most so many of a workspace and minute over all processes. How many it has kept.
create or replace function keep_refused_calls(calls jsonb, most integer) returns integer
language plpgsql volatile
set lock_timeout = '2s'
-- Whatever is known of how large the table is: it grows by the second.
set enable_seqscan = off
as $$
declare
  kept integer;
begin
  -- One process after the other: the next statement sees what those before have kept, and so counts it.
  perform pg_advisory_xact_lock(hashtext('keep_refused_calls'));
  with given as materialized (
    select *, row_number() over (partition by workspace_id, minute order by id) as place
    from jsonb_to_recordset(calls) as given (
      id uuid, workspace_id uuid, minute integer, account_id uuid, credential_id uuid, operation text, model text, code text, status smallint,
      needed bigint, left_over bigint, budget_kind text, budget_subject text, budget_period text, limited_by text, fitting_output bigint,
      retry_after_seconds integer, fix_url text, idempotency_key text)
  ), before as materialized (
    select one.workspace_id, one.minute, kept_before.calls
    from (select distinct workspace_id, minute from given) one
    join workspaces on workspaces.id = one.workspace_id
    cross join lateral (
      select count(*) as calls from refused_calls
      where account_id in (workspaces.live_account_id, workspaces.test_account_id)
        and id >= first_id_at(to_timestamp(one.minute * 60.0)) and id < first_id_at(to_timestamp(one.minute * 60.0 + 60))
    ) kept_before
  )
  insert into refused_calls (id, account_id, credential_id, operation, model, code, status, needed, left_over, budget_kind, budget_subject, budget_period,
    limited_by, fitting_output, retry_after_seconds, fix_url, idempotency_key)
  select given.id, account_id, credential_id, operation, model, code, status, needed, left_over, budget_kind, budget_subject, budget_period, limited_by,
    fitting_output, retry_after_seconds, fix_url, idempotency_key
  from given left join before using (workspace_id, minute)
  where place + coalesce(before.calls, 0) <= most
  on conflict (id) do nothing;
  get diagnostics kept = row_count;
  return kept;
end
$$;
