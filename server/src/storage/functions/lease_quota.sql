-- Gives a process some of an upstream's quota: as many as it needs now, and some ahead of need, of which a twentieth of what
-- is left is the most. What one process has ahead and never uses is lost to the others until the window ends.
create or replace function lease_quota(
  upstream uuid,
  quota integer,
  seconds double precision,
  needed integer,
  ahead integer,
  out granted integer,
  out ends_in_ms double precision
)
language plpgsql volatile as $$
declare
  at timestamptz;
  since timestamptz;
  taken integer;
  rest integer;
begin
  insert into upstream_quotas (upstream_id, started_at, leased) values (upstream, clock_timestamp(), 0)
  on conflict (upstream_id) do nothing;
  select started_at, leased into since, taken from upstream_quotas where upstream_id = upstream for update;
  -- Read after the wait for the row. A clock that was set back begins a new window, as nobody knows when the old one ends.
  at := clock_timestamp();
  if since is null or at < since or at >= since + make_interval(secs => seconds) then
    since := at;
    taken := 0;
  end if;
  rest := greatest(0, quota - taken);
  granted := least(rest, needed + least(ahead, rest / 20));
  update upstream_quotas set started_at = since, leased = taken + granted where upstream_id = upstream;
  ends_in_ms := extract(epoch from since + make_interval(secs => seconds) - at) * 1000;
end
$$;
