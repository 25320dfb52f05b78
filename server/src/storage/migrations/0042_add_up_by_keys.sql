-- Adds up some usage where nobody else does: processes of this release add up all of it every few seconds.
create or replace function add_up_forgotten_usage() returns void
language plpgsql volatile as $$
begin
  if exists (select from usage_tail where at < clock_timestamp() - interval '1 minute') then
    perform add_up_usage(most => 1000);
  end if;
end
$$;

-- Adds what usage_tail has, at most so many rows, to the sums of their hours and days, and takes it out of there: both, or neither. So a row is in
-- the tail or in the sums, never in both and never in none, whoever dies and whoever commits late: what is not visible yet stays for the
-- next time. Says how many rows it took; null where somebody else is at it. What comes to a day of which usage_combined_days has the sums already is
-- added to those too.
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
  ), hours as (
    insert into usage_hours as row (credential_id, hour, account_id, requests, failed_requests,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select credential_id, date_trunc('hour', at, 'UTC'), account_id, sum(requests), sum(failed_requests),
      sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
    -- Whoever ends calls for processes of the last release changes some of these rows too, in the same order.
    from taken group by 1, 2, 3 order by 1, 2
    on conflict (credential_id, hour) do update set
      requests = row.requests + excluded.requests,
      failed_requests = row.failed_requests + excluded.failed_requests,
      input_tokens = row.input_tokens + excluded.input_tokens,
      output_tokens = row.output_tokens + excluded.output_tokens,
      cache_read_tokens = row.cache_read_tokens + excluded.cache_read_tokens,
      cache_write_tokens = row.cache_write_tokens + excluded.cache_write_tokens,
      value = row.value + excluded.value,
      charged = row.charged + excluded.charged
  ), parts as materialized (
    select taken.*, one.about, one.subject, one.label
    from taken cross join lateral (
      select '', '', null
      union all select 'end_user', end_user::text, end_user_label where end_user is not null
      union all select 'tag:' || split_part(tag, '=', 1), substr(tag, strpos(tag, '=') + 1), null from unnest(tags) tag
    ) one (about, subject, label)
    -- What was booked before there was attribution is in no sum but that of its hour, and so is what is given back of it.
    where operation is not null
  ), sums as (
    insert into usage_sums as row (credential_id, about, hour, subject, operation, model, route, account_id, subject_label, requests,
      failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select credential_id, about, date_trunc('hour', at, 'UTC'), one.subject, operation, coalesce(model, ''), coalesce(route, ''),
      account_id, max(one.label), sum(requests), sum(failed_requests),
      sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
    from parts cross join lateral (
      select parts.subject, parts.label
      -- All that have an end user, or a tag of that name.
      union all select '', null where about <> ''
    ) one (subject, label)
    group by 1, 2, 3, 4, 5, 6, 7, 8
    on conflict (credential_id, about, subject, hour, operation, model, route) do update set
      subject_label = coalesce(excluded.subject_label, row.subject_label),
      requests = row.requests + excluded.requests,
      failed_requests = row.failed_requests + excluded.failed_requests,
      input_tokens = row.input_tokens + excluded.input_tokens,
      output_tokens = row.output_tokens + excluded.output_tokens,
      cache_read_tokens = row.cache_read_tokens + excluded.cache_read_tokens,
      cache_write_tokens = row.cache_write_tokens + excluded.cache_write_tokens,
      value = row.value + excluded.value,
      charged = row.charged + excluded.charged
  ), combined_days as (
    insert into usage_combined_days as row (credential_id, about, subject, day, operation, model, account_id, subject_label, requests, failed_requests,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select credential_id, about, one.subject, date_trunc('day', at, 'UTC'), operation, coalesce(model, ''),
      account_id, max(one.label), sum(requests), sum(failed_requests),
      sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
    from parts cross join lateral (
      select parts.subject, parts.label
      union all select '', null where about <> ''
    ) one (subject, label)
    -- As a rule there is none: it was settled on a day that is over. What lies behind the place is added with its day.
    where at < combined.until or at < combined.until + interval '24 hours'
      and (credential_id, case about when '' then 'operation' else about end collate "C", case about when '' then operation else one.subject end collate "C")
        <= (combined.credential_id, combined.about, combined.subject)
    group by 1, 2, 3, 4, 5, 6, 7
    on conflict (credential_id, about, subject, day, operation, model) do update set
      subject_label = coalesce(excluded.subject_label, row.subject_label),
      requests = row.requests + excluded.requests,
      failed_requests = row.failed_requests + excluded.failed_requests,
      input_tokens = row.input_tokens + excluded.input_tokens,
      output_tokens = row.output_tokens + excluded.output_tokens,
      cache_read_tokens = row.cache_read_tokens + excluded.cache_read_tokens,
      cache_write_tokens = row.cache_write_tokens + excluded.cache_write_tokens,
      value = row.value + excluded.value,
      charged = row.charged + excluded.charged
  ), one_by_one as materialized (
    select scope_id, one.about, one.subject, date_trunc('hour', at, 'UTC') as hour, account_id, max(one.label) as label, sum(requests) as requests,
      sum(failed_requests) as failed_requests, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,
      sum(cache_read_tokens) as cache_read_tokens, sum(cache_write_tokens) as cache_write_tokens, sum(value) as value, sum(charged) as charged
    from parts cross join lateral (
      select parts.about, parts.subject, parts.label where about <> ''
      union all select about, '', null where about <> ''
      union all select 'operation', operation, null where about = ''
      union all select 'model', model, null where about = '' and model is not null
    ) one (about, subject, label)
    cross join lateral (values (account_id), (credential_id)) scope (scope_id)
    group by 1, 2, 3, 4, 5
  ), hour_sums as (
    insert into usage_hour_sums as row (scope_id, about, subject, hour, account_id, subject_label, requests, failed_requests,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select scope_id, about, subject, hour, account_id, label, requests, failed_requests,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged
    from one_by_one
    on conflict (scope_id, about, subject, hour) do update set
      subject_label = coalesce(excluded.subject_label, row.subject_label),
      requests = row.requests + excluded.requests,
      failed_requests = row.failed_requests + excluded.failed_requests,
      input_tokens = row.input_tokens + excluded.input_tokens,
      output_tokens = row.output_tokens + excluded.output_tokens,
      cache_read_tokens = row.cache_read_tokens + excluded.cache_read_tokens,
      cache_write_tokens = row.cache_write_tokens + excluded.cache_write_tokens,
      value = row.value + excluded.value,
      charged = row.charged + excluded.charged
  ), days as (
    insert into usage_days as row (scope_id, about, subject, day, added_by, account_id, subject_label, requests, failed_requests,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select scope_id, about, subject, date_trunc('day', hour, 'UTC'), 37, account_id, max(label), sum(requests), sum(failed_requests),
      sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
    from one_by_one group by 1, 2, 3, 4, 6
    on conflict (scope_id, about, subject, day) do update set
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

-- Marks calls whose owner is gone. It looks from the owners to their calls: mostly there is no owner whose lease has ended, and then none is
-- looked for. Where nothing is marked, it adds up usage that has waited for long: workers of the last release ask for this every two seconds and for
-- add_up_usage never, and while no others run, what is in the tail has to go to usage_hours all the same.
create or replace function sweep_orphans(sweeper uuid, grace_seconds double precision, most integer) returns table (id uuid, account_id uuid, owner_id uuid)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  at constant timestamptz := clock_timestamp();
  graceful constant timestamptz := at - make_interval(secs => grace_seconds);
begin
  if pg_postmaster_start_time() > graceful
    or not exists (
      select from owners where owners.id = sweeper and least(lease_until, renew_by) >= at and held_since <= graceful
    ) then
    perform add_up_forgotten_usage();
    return;
  end if;
  return query select orphan.id, orphan.account_id, orphan.owner_id
  from mark_unsettled(array(
    select own.id from owners cross join lateral open_calls_of(owners.id, most) own (id)
    where owners.lease_until < at limit most
  ), null) orphan;
  -- Not with the locks of what was marked.
  if not found then perform add_up_forgotten_usage(); end if;
end
$$;
