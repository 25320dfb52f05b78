-- Sums by hour of one operation, model, end user or value of a tag, of a key and of its whole account: what usage_days has, by the hour. So a report by hour
-- reads a row for each of its groups and hours, and one by day the same of the days that it has a part of, however many keys, operations, models and routes
-- they were of.

-- Nobody adds up meanwhile: who tries finds that somebody else is at it. Calls write to the tail, and do not wait.
select pg_advisory_xact_lock(hashtext('add_up_usage'));

create table usage_hour_sums (
  -- As in usage_days.
  scope_id uuid not null,
  about text collate "C" not null,
  subject text collate "C" not null,
  hour timestamptz not null,
  account_id uuid not null,
  subject_label text,
  requests bigint not null,
  failed_requests bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_write_tokens bigint not null,
  value bigint not null,
  charged bigint not null,
  primary key (scope_id, about, subject, hour)
) with (fillfactor = 80);

-- A report by operation or by model is about all of them.
create index usage_hour_sums_of_calls on usage_hour_sums (scope_id, about, hour) where about in ('operation', 'model');
-- For those who drop what is old: as many as there are names, and kept for less long than what stands between them.
create index usage_hour_sums_of_subjects on usage_hour_sums (hour) where subject <> '' and about not in ('operation', 'model');
create index usage_hour_sums_of_others on usage_hour_sums (hour) where subject = '' or about in ('operation', 'model');

-- What was added up until now. A database of the last release has none of it.
insert into usage_hour_sums (scope_id, about, subject, hour, account_id, subject_label, requests, failed_requests,
  input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
select scope_id, one.about, one.subject, hour, account_id, max(subject_label), sum(requests), sum(failed_requests),
  sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
from usage_sums cross join lateral (
  select usage_sums.about, usage_sums.subject where usage_sums.about <> ''
  union all select 'operation', operation where usage_sums.about = ''
  union all select 'model', model where usage_sums.about = '' and model <> ''
) one (about, subject)
cross join lateral (values (account_id), (credential_id)) scope (scope_id)
group by 1, 2, 3, 4, 5;

-- Adds what usage_tail has, at most so many rows, to the sums of their hours and days, and takes it out of there: both, or neither. So a row is in
-- the tail or in the sums, never in both and never in none, whoever dies and whoever commits late: what is not visible yet stays for the
-- next time. Says how many rows it took; null where somebody else is at it.
create or replace function add_up_usage(most integer) returns integer
language plpgsql volatile
set plan_cache_mode = force_generic_plan
as $$
declare
  added integer;
begin
  -- One at a time: two would wait for each other's sums.
  if not pg_try_advisory_xact_lock(hashtext('add_up_usage')) then return null; end if;

  with taken as (
    delete from usage_tail where ctid = any (array(select ctid from usage_tail limit most)) returning *
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
    insert into usage_days as row (scope_id, about, subject, day, account_id, subject_label, requests, failed_requests,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select scope_id, about, subject, date_trunc('day', hour, 'UTC'), account_id, max(label), sum(requests), sum(failed_requests),
      sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
    from one_by_one group by 1, 2, 3, 4, 5
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

-- Drops some of the sums of a table that are to be kept no longer, and answers how many: sums of days, and sums of hours, of which those by end user
-- and by tag are as many as there are names, and are kept for less long. Until when those are gone is noted first. One table at a time: where
-- one fails, what was dropped of the others is gone.
create or replace function drop_old_usage(of_table text, first_day timestamptz, first_hour timestamptz, most integer) returns integer
language plpgsql volatile set plan_cache_mode = force_custom_plan as $$
declare
  dropped integer;
  more integer;
  -- Sums never go before the charges that they are made of.
  first_sum timestamptz := coalesce((select least(first_day, (max(day) + 1)::timestamp at time zone 'UTC') from dropped_days having max(day) is not null), '-infinity');
begin
  if of_table = 'usage_days' then
    delete from usage_days where ctid = any (array(select ctid from usage_days where day < first_sum limit most));
    get diagnostics dropped = row_count;
    return dropped;
  end if;
  insert into usage_kept (hours_from) values (first_hour) on conflict (is_all) do update set hours_from = greatest(usage_kept.hours_from, excluded.hours_from);
  -- In the order of an index of just these rows: what is kept for longer stands between them, and is not read.
  if of_table = 'usage_sums' then
    delete from usage_sums where ctid = any (array(select ctid from usage_sums where hour < first_hour and subject <> '' order by hour limit most));
    get diagnostics dropped = row_count;
    delete from usage_sums where ctid = any (array(select ctid from usage_sums where hour < first_sum limit most - dropped));
  elsif of_table = 'usage_hour_sums' then
    delete from usage_hour_sums where ctid = any (array(
      select ctid from usage_hour_sums where hour < first_hour and subject <> '' and about not in ('operation', 'model') order by hour limit most));
    get diagnostics dropped = row_count;
    delete from usage_hour_sums where ctid = any (array(
      select ctid from usage_hour_sums where hour < first_sum and (subject = '' or about in ('operation', 'model')) order by hour limit most - dropped));
  else
    raise exception 'no table of sums: %', of_table;
  end if;
  get diagnostics more = row_count;
  return dropped + more;
end
$$;
drop function drop_usage_before(timestamptz, timestamptz, integer);

-- The new name stops whoever still runs the old text of add_up_usage once this commits: it would add to the days and not to the hours. At the
-- end: reports wait from here on.
alter table usage_days rename column label to subject_label;
