-- Gives PostgreSQL's clock as well, by which ids are made.
create or replace function renew_lease(owner uuid, seconds double precision, out at timestamptz, out since timestamptz)
language plpgsql volatile as $$
begin
  at := clock_timestamp();
  insert into owners as row (id, lease_until, renew_by, held_since)
  values (owner, at + make_interval(secs => seconds), at + make_interval(secs => seconds / 2), at)
  on conflict (id) do update set
    lease_until = excluded.lease_until,
    renew_by = excluded.renew_by,
    held_since = case when row.renew_by >= at then row.held_since else at end
  returning held_since into since;
end
$$;
