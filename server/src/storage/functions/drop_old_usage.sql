-- Drops some of the sums of a table that are to be kept no longer, and answers how many: those that are kept as long as charges, and brief ones. Until when
-- brief ones are gone is noted: by what was there to be dropped, so that a clock that ran ahead refuses no report of what came after it was set back. One table
-- at a time: where one fails, what was dropped of the other is gone.
create or replace function drop_old_usage(of_table text, first_lasting timestamptz, first_brief timestamptz, most integer) returns integer
language plpgsql volatile set plan_cache_mode = force_custom_plan as $$
declare
  dropped integer;
  more integer;
  gone_until timestamptz;
  -- Sums never go before the charges that they are made of.
  first_sum timestamptz := coalesce((select least(first_lasting, (max(day) + 1)::timestamp at time zone 'UTC') from dropped_days having max(day) is not null), '-infinity');
begin
  if of_table not in ('usage_totals', 'usage_sums') then raise exception 'no table of sums: %', of_table; end if;
  execute format('
    with gone as (
      delete from %1$I where ctid = any (array(select ctid from %1$I where is_brief and starts_at < $1 order by starts_at limit $2)) returning grain, starts_at
    ) select count(*), max(starts_at + case grain when ''hour'' then interval ''1 hour'' else interval ''24 hours'' end) from gone', of_table)
  into dropped, gone_until using first_brief, most;
  execute format('delete from %1$I where ctid = any (array(select ctid from %1$I where not is_brief and starts_at < $1 order by starts_at limit $2))', of_table)
  using first_sum, most - dropped;
  get diagnostics more = row_count;
  insert into usage_kept (hours_from) select gone_until where gone_until is not null
  on conflict (is_all) do update set hours_from = greatest(usage_kept.hours_from, excluded.hours_from);
  return dropped + more;
end
$$;
