-- Marks calls whose owner is gone. It looks from the owners to their calls: mostly there is no owner whose lease has ended, and then none is
-- looked for. Where nothing is marked, it adds up usage that has waited for long: workers of the last release ask for this every two seconds and for
-- add_up_usage never, and while no others run, what is in the tail has to go to usage_hours all the same.
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
    perform add_up_forgotten_usage();
    return;
  end if;
  return query select orphan.id, orphan.account_id, orphan.owner_id
  from mark_unsettled(array(
    select own.id from owners cross join lateral open_calls_of(owners.id, most) own (id)
    where owners.lease_until < at limit most
  ), null) orphan;
  -- Not with the locks of what was marked.
  if not found then perform add_up_forgotten_usage(); end if;
end
$$;
