-- Counts an attempt in several windows at once: in all of them, or in none where one is full. Seconds until it may be tried again,
-- 0 where it was counted. Rows are locked in the order of their keys, and judged after that, so that no two share a place.
create or replace function take_attempts(kinds text[], keys bytea[], most integer[], seconds double precision[]) returns double precision
language plpgsql volatile as $$
declare
  at timestamptz;
  wait double precision;
begin
  insert into door_attempts as row (kind, key, ends_at, count)
  select item.kind, item.key, '-infinity', 0 from unnest(kinds, keys) item (kind, key) order by item.kind, item.key
  on conflict (kind, key) do update set count = row.count;
  at := clock_timestamp();
  select max(extract(epoch from row.ends_at - at)) into wait
  from unnest(kinds, keys, most) item (kind, key, most)
  join door_attempts row on row.kind = item.kind and row.key = item.key
  where row.ends_at > at and row.count >= item.most;
  if wait is not null then
    -- Whoever is refused must not be able to fill the table.
    delete from door_attempts row using unnest(kinds, keys) item (kind, key)
    where row.kind = item.kind and row.key = item.key and row.ends_at = '-infinity';
    return wait;
  end if;
  update door_attempts row set
    count = case when row.ends_at > at then row.count + 1 else 1 end,
    ends_at = case when row.ends_at > at then row.ends_at else at + make_interval(secs => item.seconds) end
  from unnest(kinds, keys, seconds) item (kind, key, seconds)
  where row.kind = item.kind and row.key = item.key;
  return 0;
end
$$;
