-- Some of an upstream's tasks of one age that are due, those that are overdue the longest first. Nobody else is given them
-- while the lease lasts, and nobody waits for who is at one.
create or replace function claim_due(upstream uuid, young boolean, at timestamptz, most integer, lease_seconds double precision)
returns setof tasks
language sql volatile
set enable_seqscan = off
set enable_bitmapscan = off
begin atomic
  update tasks set next_poll_at = at + make_interval(secs => lease_seconds)
  where ctid = any (array(
    select ctid from tasks
    where upstream_id = upstream and is_young = young and next_poll_at <= at
    order by next_poll_at limit most for update skip locked
  ))
  returning *;
end;
