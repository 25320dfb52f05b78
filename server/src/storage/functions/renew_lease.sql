-- For processes of releases that know budgets of keys alone. They may run while there are no others; whoever sets the first one waits until
-- none of them lives.
create or replace function renew_lease(owner uuid, seconds double precision, out at timestamptz, out since timestamptz)
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock_shared(hashtext('farebox budgets'));
  if exists (select from budgets) then
    raise exception 'there are budgets that this release of the program does not know: run a newer one, or remove them with farebox budgets remove';
  end if;
  select lease.at, lease.since into at, since from renew_lease_knowing(owner, seconds, 0) lease;
end
$$;
