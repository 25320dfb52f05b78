create or replace function forget_owners(ended_before timestamptz) returns void
language sql volatile as $$
  delete from owners where lease_until < ended_before and not exists (select from holds where holds.owner_id = owners.id);
  insert into owners (id, lease_until, renew_by, held_since)
  select distinct owner_id, clock_timestamp(), clock_timestamp(), clock_timestamp() from holds
  where unsettled_at is null and owner_id is not null and not exists (select from owners where owners.id = holds.owner_id)
  on conflict (id) do nothing
$$;
