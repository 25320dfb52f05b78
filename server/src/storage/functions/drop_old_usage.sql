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
