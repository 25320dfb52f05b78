-- Adds what usage_tail has, at most so many rows, to the sums of their hours and days, and takes it out of there: both, or neither. So a row is in
-- the tail or in the sums, never in both and never in none, whoever dies and whoever commits late: what is not visible yet stays for the
-- next time. Says how many rows it took; null where somebody else is at it. What comes to a day of which usage_sums has the day already is
-- added to that too.
create or replace function add_up_usage(most integer) returns integer
language plpgsql volatile
set plan_cache_mode = force_generic_plan
as $$
declare
  added integer;
  combined usage_combined;
begin
  -- One at a time: two would wait for each other's sums.
  if not pg_try_advisory_xact_lock(hashtext('add_up_usage')) then return null; end if;
  select * into combined from usage_combined;

  with chosen as (
    -- All that a key has, as far as it is near: its calls are then added to each of its sums at once.
    select place from (select ctid as place, credential_id from usage_tail limit 10 * most) near order by credential_id limit most
  ), taken as (
    delete from usage_tail where ctid = any (array(select place from chosen)) returning *
  ), alike as materialized (
    -- What is alike in whose it is goes on as one row for its hour: there are many calls of a key, and few sums.
    select account_id, credential_id, date_trunc('hour', at, 'UTC') as hour, operation, coalesce(model, '') as model, end_user,
      max(end_user_label) as end_user_label, tags,
      sum(requests)::bigint as requests, sum(failed_requests)::bigint as failed_requests, sum(input_tokens)::bigint as input_tokens,
      sum(output_tokens)::bigint as output_tokens, sum(cache_read_tokens)::bigint as cache_read_tokens,
      sum(cache_write_tokens)::bigint as cache_write_tokens, sum(value)::bigint as value, sum(charged)::bigint as charged
    from taken group by 1, 2, 3, 4, 5, 6, 8
  ), parts as materialized (
    select alike.*, one.about, one.subject, one.label
    from alike cross join lateral (
      select '', '', null
      -- An end user or a tag, and all that have one.
      union all select 'end_user', subject, label
        from (values (end_user::text, end_user_label), ('', null)) own (subject, label) where end_user is not null
      union all select 'tag:' || split_part(tag, '=', 1), subject, null
        from unnest(tags) tag cross join lateral (values (substr(tag, strpos(tag, '=') + 1)), ('')) own (subject)
    ) one (about, subject, label)
  ), sums as (
    insert into usage_sums as row (credential_id, about, grain, subject, starts_at, operation, model, account_id, subject_label,
      requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select credential_id, about, 'hour', subject, hour, operation, model, account_id, max(label), sum(requests), sum(failed_requests),
      sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
    from parts group by 1, 2, 4, 5, 6, 7, 8
    union all
    select credential_id, about, 'day', subject, date_trunc('day', hour, 'UTC'), operation, model, account_id, max(label), sum(requests),
      sum(failed_requests), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
    -- As a rule there is none: it was settled on a day that is over. What lies behind the place is added with its day.
    from parts where hour < combined.until or hour < combined.until + interval '24 hours'
      and (credential_id, about collate "C", subject collate "C") <= (combined.credential_id, combined.about, combined.subject)
    group by 1, 2, 4, 5, 6, 7, 8
    on conflict (credential_id, about, grain, subject, starts_at, operation, model) do update set
      subject_label = coalesce(excluded.subject_label, row.subject_label),
      requests = row.requests + excluded.requests,
      failed_requests = row.failed_requests + excluded.failed_requests,
      input_tokens = row.input_tokens + excluded.input_tokens,
      output_tokens = row.output_tokens + excluded.output_tokens,
      cache_read_tokens = row.cache_read_tokens + excluded.cache_read_tokens,
      cache_write_tokens = row.cache_write_tokens + excluded.cache_write_tokens,
      value = row.value + excluded.value,
      charged = row.charged + excluded.charged
  ), hours as materialized (
    select scope_id, one.about, one.subject, hour, account_id, max(one.label) as label, sum(requests) as requests,
      sum(failed_requests) as failed_requests, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,
      sum(cache_read_tokens) as cache_read_tokens, sum(cache_write_tokens) as cache_write_tokens, sum(value) as value, sum(charged) as charged
    from parts cross join lateral (
      select about, subject, label
      union all select 'operation', operation, null where about = ''
      union all select 'model', model, null where about = '' and model <> ''
    ) one (about, subject, label)
    cross join lateral (values (account_id), (credential_id)) scope (scope_id)
    group by 1, 2, 3, 4, 5
  ), totals as (
    insert into usage_totals as row (scope_id, about, grain, subject, starts_at, account_id, subject_label,
      requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select scope_id, about, 'hour', subject, hour, account_id, label,
      requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged
    from hours
    union all
    select scope_id, about, 'day', subject, date_trunc('day', hour, 'UTC'), account_id, max(label), sum(requests), sum(failed_requests),
      sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
    from hours group by scope_id, about, subject, date_trunc('day', hour, 'UTC'), account_id
    on conflict (scope_id, about, grain, subject, starts_at) do update set
      subject_label = coalesce(excluded.subject_label, row.subject_label),
      requests = row.requests + excluded.requests,
      failed_requests = row.failed_requests + excluded.failed_requests,
      input_tokens = row.input_tokens + excluded.input_tokens,
      output_tokens = row.output_tokens + excluded.output_tokens,
      cache_read_tokens = row.cache_read_tokens + excluded.cache_read_tokens,
      cache_write_tokens = row.cache_write_tokens + excluded.cache_write_tokens,
      value = row.value + excluded.value,
      charged = row.charged + excluded.charged
  )
  select count(*) into added from taken;
  return added;
end
$$;
