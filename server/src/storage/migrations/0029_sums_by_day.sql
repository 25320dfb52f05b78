-- Sums by day, one for each operation, model, end user and value of a tag, of a key and of its whole account: so that a report over weeks reads a row
-- for each of its groups and days, and finds the largest of very many end users without reading them all.

-- Nobody adds up meanwhile: who tries finds that somebody else is at it. Calls write to the tail, and do not wait.
select pg_advisory_xact_lock(hashtext('add_up_usage'));

create table usage_days (
  -- A credential or an account.
  scope_id uuid not null,
  -- operation, model, end_user, or tag:<name>.
  about text collate "C" not null,
  -- Empty for all that have an end user, or a tag of that name.
  subject text collate "C" not null,
  day timestamptz not null,
  account_id uuid not null,
  label text,
  requests bigint not null,
  failed_requests bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_write_tokens bigint not null,
  value bigint not null,
  charged bigint not null,
  -- How large it is, in steps of a fifth: with the amount itself in an index, every change would write the index. What is free is ranked by its
  -- requests, below all that was charged.
  size smallint generated always as (case when charged > 0 then round(4 * ln(charged::float8) / ln(2::float8))
    else -1000 + round(4 * ln(greatest(requests, 0)::float8 + 1) / ln(2::float8)) end) stored,
  primary key (scope_id, about, subject, day)
) with (fillfactor = 80);

create index usage_days_by_size on usage_days (scope_id, about, day, size desc) where subject <> '';
-- For those who drop what is old: days come one after the other.
create index usage_days_by_day on usage_days using brin (day);

-- From when on there are sums of hours by end user and by tag; without a row, from the beginning.
create table usage_kept (
  is_all boolean primary key default true check (is_all),
  hours_from timestamptz not null
);

-- A report asks for the hours of some end users. The new name stops whoever still runs the old text of add_up_usage once this commits: it would
-- add to the hours and not to the days.
alter table usage_sums rename column label to subject_label;
alter table usage_sums drop constraint usage_sums_pkey, add primary key (credential_id, about, subject, hour, operation, model, route);
drop index usage_sums_of_account;
create index usage_sums_of_account on usage_sums (account_id, about, subject, hour);
-- For those who drop what is old: as many as there are names.
create index usage_sums_of_subjects on usage_sums (hour) where subject <> '';

-- What was added up until now. A database of the last release has none of it.
insert into usage_sums (credential_id, about, hour, subject, operation, model, route, account_id, requests, failed_requests,
  input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
select credential_id, about, hour, '', operation, model, route, account_id, sum(requests), sum(failed_requests),
  sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
from usage_sums where about <> '' group by 1, 2, 3, 5, 6, 7, 8;

insert into usage_days (scope_id, about, subject, day, account_id, label, requests, failed_requests,
  input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
select scope_id, one.about, one.subject, date_trunc('day', hour, 'UTC'), account_id, max(subject_label), sum(requests), sum(failed_requests),
  sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
from usage_sums cross join lateral (
  select usage_sums.about, usage_sums.subject where usage_sums.about <> ''
  union all select 'operation', operation where usage_sums.about = ''
  union all select 'model', model where usage_sums.about = '' and model <> ''
) one (about, subject)
cross join lateral (values (account_id), (credential_id)) scope (scope_id)
group by 1, 2, 3, 4, 5;

-- Adds what usage_tail has, at most so many rows, to the sums of their hours, and takes it out of there: both, or neither. So a row is in
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
  ), days as (
    insert into usage_days as row (scope_id, about, subject, day, account_id, label, requests, failed_requests,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select scope_id, one.about, one.subject, date_trunc('day', at, 'UTC'), account_id, max(one.label), sum(requests), sum(failed_requests),
      sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
    from parts cross join lateral (
      select parts.about, parts.subject, parts.label where about <> ''
      union all select about, '', null where about <> ''
      union all select 'operation', operation, null where about = ''
      union all select 'model', model, null where about = '' and model is not null
    ) one (about, subject, label)
    cross join lateral (values (account_id), (credential_id)) scope (scope_id)
    group by 1, 2, 3, 4, 5
    on conflict (scope_id, about, subject, day) do update set
      label = coalesce(excluded.label, row.label),
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

-- Drops the oldest day that is to be kept no longer, and answers which; null where there is none, or somebody else is at
-- it. Its sums are carried forward in the same transaction, which has to end with this statement: whoever settles waits
-- from the drop to the commit, and at most as long as the lock for the drop is waited for. Where that is too long, this
-- fails and can be tried again.
create or replace function drop_charges_before(first_kept date) returns date
language plpgsql volatile
set lock_timeout = '300ms'
as $$
declare
  day date;
  name text;
  starts timestamptz;
begin
  if not pg_try_advisory_xact_lock(hashtext('drop_charges_before')) then return null; end if;
  select to_date(right(relname, 8), 'YYYYMMDD') into day
  from pg_inherits join pg_class on pg_class.oid = inhrelid
  where inhparent = 'charges'::regclass order by relname limit 1;
  if day is null or day >= first_kept then return null; end if;
  name := 'charges_' || to_char(day, 'YYYYMMDD');
  starts := day::timestamp at time zone 'UTC';

  -- Nothing is added to the day while it is summed up. Calls of other days do not ask for this lock.
  execute format('lock table %I in share row exclusive mode', name);
  execute format('
    insert into dropped_charges as row (account_id, amount, promo)
    select account_id, sum(amount), sum(promo) from %I where amount > 0 group by account_id
    on conflict (account_id) do update set amount = row.amount + excluded.amount, promo = row.promo + excluded.promo', name);
  execute format('
    insert into dropped_allowances as row (allowance_id, starts_at, amount)
    select allowance.id, period_start(allowance.period, charge.begun_at), sum(charge.amount)
    from %I charge cross join unnest(charge.allowances) one (id) join allowances allowance on allowance.id = one.id
    where charge.amount > 0 group by 1, 2
    on conflict (allowance_id, starts_at) do update set amount = row.amount + excluded.amount', name);
  insert into dropped_days values (day) on conflict do nothing;
  delete from usage_hours where hour < starts;

  -- Who gives a charge back reads it first. So once nobody reads the day any more, all that was given back is there to be
  -- seen, and no more will be.
  execute format('lock table %I in access exclusive mode', name);
  execute format('
    update dropped_allowances row set amount = row.amount + given.charged
    from (
      select allowance.id, period_start(allowance.period, charge.begun_at) as starts_at, sum(entry.charged) as charged
      from entries entry join %I charge on charge.id = entry.corrects
      cross join unnest(charge.allowances) one (id) join allowances allowance on allowance.id = one.id
      where entry.corrects >= $1 and entry.corrects < $2
      group by 1, 2
    ) given
    where row.allowance_id = given.id and row.starts_at = given.starts_at', name)
  using first_id_at(starts), first_id_at(starts + interval '1 day');
  execute format('drop table %I', name);
  return day;
end
$$;

-- Drops some of the sums that are to be kept no longer, and answers how many: sums of days, and sums of hours, of which those by end user and by
-- tag are as many as there are names, and are kept for less long. Until when those are gone is noted first.
create or replace function drop_usage_before(first_day timestamptz, first_hour timestamptz, most integer) returns integer
language plpgsql volatile set plan_cache_mode = force_custom_plan as $$
declare
  dropped integer;
  more integer;
  -- Sums never go before the charges that they are made of.
  first_sum timestamptz := coalesce((select least(first_day, (max(day) + 1)::timestamp at time zone 'UTC') from dropped_days having max(day) is not null), '-infinity');
begin
  insert into usage_kept (hours_from) values (first_hour) on conflict (is_all) do update set hours_from = greatest(usage_kept.hours_from, excluded.hours_from);
  delete from usage_sums where ctid = any (array(select ctid from usage_sums where hour < first_hour and subject <> '' order by hour limit most));
  get diagnostics dropped = row_count;
  delete from usage_sums where ctid = any (array(select ctid from usage_sums where hour < first_sum limit most - dropped));
  get diagnostics more = row_count;
  dropped := dropped + more;
  delete from usage_days where ctid = any (array(select ctid from usage_days where day < first_sum limit most - dropped));
  get diagnostics more = row_count;
  return dropped + more;
end
$$;
