-- Sums by day of what combines two, such as a model and a tag: what usage_sums has by the hour, without the route. They are made of those hours once the day is over,
-- so a call writes them with none of its own rows. Until there are any, reports read the hours.

-- Nobody adds up meanwhile: who tries finds that somebody else is at it. Calls write to the tail, and do not wait.
select pg_advisory_xact_lock(hashtext('add_up_usage'));

create table usage_combined_days (
  credential_id uuid not null,
  -- As in usage_sums.
  about text collate "C" not null,
  subject text collate "C" not null,
  day timestamptz not null,
  operation text collate "C" not null,
  -- Empty for none.
  model text collate "C" not null,
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
  primary key (credential_id, about, subject, day, operation, model)
) with (fillfactor = 90);

create index usage_combined_days_of_account on usage_combined_days (account_id, about, subject, day);
-- For those who drop what is old: as many as there are names, and kept for less long than the others.
create index usage_combined_days_of_subjects on usage_combined_days (day) where subject <> '';
create index usage_combined_days_of_others on usage_combined_days (day) where subject = '';

-- How far days are combined; without a row, none is. All days before `until` are, and of that day the names up to and with this one.
create table usage_combined (
  is_all boolean primary key default true check (is_all),
  until timestamptz not null,
  credential_id uuid,
  about text collate "C",
  subject text collate "C"
);

-- The names of a day, key by key.
create index usage_days_of_keys on usage_days (day, scope_id, about, subject) where scope_id <> account_id;

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

-- Drops some of the sums of a table that are to be kept no longer, and answers how many: sums of days, and sums of hours, of which those by end user
-- and by tag are as many as there are names, and are kept for less long; so are combined sums of days. Until when those are gone is noted: by what was there to
-- be dropped, so that a clock that ran ahead refuses no report of what came after it was set back. One table at a time: where one fails, what was dropped of
-- the others is gone.
create or replace function drop_old_usage(of_table text, first_day timestamptz, first_hour timestamptz, most integer) returns integer
language plpgsql volatile set plan_cache_mode = force_custom_plan as $$
declare
  dropped integer;
  more integer;
  gone_until timestamptz;
  -- Sums never go before the charges that they are made of.
  first_sum timestamptz := coalesce((select least(first_day, (max(day) + 1)::timestamp at time zone 'UTC') from dropped_days having max(day) is not null), '-infinity');
begin
  if of_table = 'usage_days' then
    delete from usage_days where ctid = any (array(select ctid from usage_days where day < first_sum limit most));
    get diagnostics dropped = row_count;
    return dropped;
  end if;
  -- In the order of an index of just these rows: what is kept for longer stands between them, and is not read.
  if of_table = 'usage_sums' then
    with gone as (
      delete from usage_sums where ctid = any (array(select ctid from usage_sums where hour < first_hour and subject <> '' order by hour limit most)) returning hour
    ) select count(*), max(hour) + interval '1 hour' into dropped, gone_until from gone;
    delete from usage_sums where ctid = any (array(select ctid from usage_sums where hour < first_sum limit most - dropped));
  elsif of_table = 'usage_hour_sums' then
    with gone as (
      delete from usage_hour_sums where ctid = any (array(
        select ctid from usage_hour_sums where hour < first_hour and subject <> '' and about not in ('operation', 'model') order by hour limit most)) returning hour
    ) select count(*), max(hour) + interval '1 hour' into dropped, gone_until from gone;
    delete from usage_hour_sums where ctid = any (array(
      select ctid from usage_hour_sums where hour < first_sum and (subject = '' or about in ('operation', 'model')) order by hour limit most - dropped));
  elsif of_table = 'usage_combined_days' then
    with gone as (
      delete from usage_combined_days where ctid = any (array(
        select ctid from usage_combined_days where day < first_hour and subject <> '' order by day limit most)) returning day
    ) select count(*), max(day) + interval '24 hours' into dropped, gone_until from gone;
    delete from usage_combined_days where ctid = any (array(
      select ctid from usage_combined_days where day < first_sum and subject = '' order by day limit most - dropped));
  else
    raise exception 'no table of sums: %', of_table;
  end if;
  get diagnostics more = row_count;
  insert into usage_kept (hours_from) select gone_until where gone_until is not null
  on conflict (is_all) do update set hours_from = greatest(usage_kept.hours_from, excluded.hours_from);
  return dropped + more;
end
$$;

-- Adds up the hours of usage_sums by day, for days that are over, the oldest first, and notes up to where: both, or neither. At most so many names of keys at
-- once, in the order of their index. What is added to such a day later, add_up_usage adds here too. Nobody adds up meanwhile. Says how many names it
-- took, at least 1 where a day was due; 0 where none is, and null where somebody else is at it.
create or replace function combine_usage_days(most integer) returns integer
language plpgsql volatile
set plan_cache_mode = force_generic_plan
as $$
declare
  combined usage_combined;
  due timestamptz;
  taken integer;
begin
  if not pg_try_advisory_xact_lock(hashtext('add_up_usage')) then return null; end if;
  select * into combined from usage_combined;
  select min(day) into due from usage_days where scope_id <> account_id and day >= coalesce(combined.until, '-infinity');
  -- Most of what is settled late is in its hours by then. Were it not, nothing would be wrong.
  if due is null or due + interval '24 hours 10 minutes' > clock_timestamp() then return 0; end if;
  if combined.until is distinct from due or combined.credential_id is null then
    -- A day from its beginning. Those in between have nothing.
    combined := row(true, due, '00000000-0000-0000-0000-000000000000', '', '')::usage_combined;
  end if;

  with places as materialized (
    select scope_id, about, subject from usage_days
    where scope_id <> account_id and day = due and about <> 'model'
      and (scope_id, about, subject) > (combined.credential_id, combined.about, combined.subject)
    order by scope_id, about, subject limit most
  ), sums as (
    insert into usage_combined_days (credential_id, about, subject, day, operation, model, account_id, subject_label, requests, failed_requests,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select used.credential_id, used.about, used.subject, due, used.operation, used.model, used.account_id, max(subject_label), sum(requests), sum(failed_requests),
      sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
    -- Each looked up by itself. What has no name stands under its operation in usage_days.
    from places cross join lateral (
      select usage_sums.* from usage_sums
      where usage_sums.credential_id = places.scope_id and hour >= due and hour < due + interval '24 hours'
        and usage_sums.about = case places.about when 'operation' then '' else places.about end
        and usage_sums.subject = case places.about when 'operation' then '' else places.subject end
        and (places.about <> 'operation' or usage_sums.operation = places.subject)
      order by hour offset 0
    ) used
    group by 1, 2, 3, 4, 5, 6, 7
  ), last as (
    select scope_id, about, subject from places order by scope_id desc, about desc, subject desc limit 1
  )
  select (select count(*) from places), last.scope_id, last.about, last.subject
  into taken, combined.credential_id, combined.about, combined.subject
  from (select) one left join last on true;

  if taken < most then combined := row(true, due + interval '24 hours', null, null, null)::usage_combined; end if;
  insert into usage_combined values (combined.*)
  on conflict (is_all) do update set until = excluded.until, credential_id = excluded.credential_id, about = excluded.about, subject = excluded.subject;
  return greatest(taken, 1);
end
$$;

-- Who still runs the old text of add_up_usage once this commits gives no such value, and so adds nothing: it would add to the hours of a day that may be
-- combined by then, and not to the day. No process writes this table by itself. At the end: reports wait from here on.
alter table usage_days add column added_by smallint not null default 33;
alter table usage_days alter column added_by drop default;
