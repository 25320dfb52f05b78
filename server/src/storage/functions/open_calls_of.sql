-- Those that nobody has disowned, oldest first. It is ordered behind the look-up, so that no order can lead to another index.
create or replace function open_calls_of(owner uuid, most integer) returns setof uuid
language sql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
  select own.id from (select id from holds where owner_id = owner and unsettled_at is null offset 0) own order by own.id limit most
$$;
