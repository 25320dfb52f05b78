-- The calls of a process, found by the index of owners and by nothing else. Nearly all that the index has are calls that have
-- ended, until they are vacuumed away. Who looks them up one by one marks them as dead, and passes over them from then on; a
-- bitmap of them, or a read of the whole table, meets every one of them every time.

-- Those that nobody has disowned, oldest first. It is ordered behind the look-up, so that no order can lead to another index.
create function open_calls_of(owner uuid, most integer) returns setof uuid
language sql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
  select own.id from (select id from holds where owner_id = owner and unsettled_at is null offset 0) own order by own.id limit most
$$;

-- As before, but from the owners to their calls: mostly there is no owner whose lease has ended, and then none is looked for.
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
    return;
  end if;
  return query select orphan.id, orphan.account_id, orphan.owner_id
  from mark_unsettled(array(
    select own.id from owners cross join lateral open_calls_of(owners.id, most) own (id)
    where owners.lease_until < at limit most
  ), null) orphan;
end
$$;
