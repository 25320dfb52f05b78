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
  delete from usage_hour_sums where ctid = any (array(
    select ctid from usage_hour_sums where hour < first_hour and subject <> '' and about not in ('operation', 'model') limit most - dropped));
  get diagnostics more = row_count;
  dropped := dropped + more;
  delete from usage_sums where ctid = any (array(select ctid from usage_sums where hour < first_sum limit most - dropped));
  get diagnostics more = row_count;
  dropped := dropped + more;
  delete from usage_hour_sums where ctid = any (array(select ctid from usage_hour_sums where hour < first_sum limit most - dropped));
  get diagnostics more = row_count;
  dropped := dropped + more;
  delete from usage_days where ctid = any (array(select ctid from usage_days where day < first_sum limit most - dropped));
  get diagnostics more = row_count;
  return dropped + more;
end
$$;
