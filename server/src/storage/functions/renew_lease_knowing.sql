-- Gives PostgreSQL's clock as well, by which ids are made. `knows` says which ceilings the process holds calls against: 1 for budgets of
-- workspaces, members, tags and end users beside those of keys.
create or replace function renew_lease_knowing(owner uuid, seconds double precision, knows_in integer, out at timestamptz, out since timestamptz)
language plpgsql volatile as $$
begin
  at := clock_timestamp();
  insert into owners as row (id, lease_until, renew_by, held_since, knows)
  values (owner, at + make_interval(secs => seconds), at + make_interval(secs => seconds / 2), at, knows_in)
  on conflict (id) do update set
    lease_until = excluded.lease_until,
    renew_by = excluded.renew_by,
    held_since = case when row.renew_by >= at then row.held_since else at end,
    knows = excluded.knows
  returning held_since into since;
end
$$;
