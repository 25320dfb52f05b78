-- Marks calls whose owner is gone. It looks from the owners to their calls: mostly there is no owner whose lease has ended, and then none is
-- looked for.
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
