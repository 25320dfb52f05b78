-- Tasks that are to be asked for now, within the pace of each upstream. Three of four are young ones, whose callers wait
-- for them; whatever is not used by one age is the other's, so that none starves.
create or replace function claim_tasks(most integer, lease_seconds double precision) returns setof tasks
language plpgsql volatile as $$
declare
  upstream record;
  at timestamptz;
  used timestamptz;
  step interval;
  granted integer;
  taken integer;
  rest integer := most;
  got integer;
begin
  -- In one order, as whoever adds the same ones waits for us: in the loop's, two could wait for each other.
  insert into upstream_polls (upstream_id, used_until)
  select id, '-infinity' from upstreams
  where polls_per_second is not null and not exists (select from upstream_polls where upstream_id = upstreams.id)
  order by id
  on conflict do nothing;

  -- The first of each age is found by the index, whether it is due or not: a search for one that is due would read
  -- everything that is open while none is.
  for upstream in
    select id, polls_per_second as quota from upstreams
    where clock_timestamp() >= least(
      (select min(next_poll_at) from tasks where upstream_id = upstreams.id and is_young),
      (select min(next_poll_at) from tasks where upstream_id = upstreams.id and not is_young)
    )
    order by random()
  loop
    exit when rest <= 0;
    granted := rest;
    at := clock_timestamp();
    if upstream.quota is not null then
      -- Who finds it locked leaves this upstream to the other.
      select used_until into used from upstream_polls where upstream_id = upstream.id for update skip locked;
      continue when not found;
      at := clock_timestamp();
      -- An eighth of a second's worth may go at once. The steps are so long that with it no second has more than the quota.
      step := make_interval(secs => 1.0 / greatest(upstream.quota - ceil(upstream.quota / 8.0), upstream.quota / 2.0));
      -- A clock that was set back must not stop us for as long.
      if used > at + interval '2 seconds' then used := at; end if;
      used := greatest(used, at - step * ceil(upstream.quota / 8.0));
      granted := least(granted, floor(extract(epoch from at - used) / extract(epoch from step))::integer);
      continue when granted <= 0;
    end if;

    return query select * from claim_due(upstream.id, false, at, floor(granted / 4.0 + random())::integer, lease_seconds);
    get diagnostics taken = row_count;
    return query select * from claim_due(upstream.id, true, at, granted - taken, lease_seconds);
    get diagnostics got = row_count;
    taken := taken + got;
    if taken < granted then
      return query select * from claim_due(upstream.id, false, at, granted - taken, lease_seconds);
      get diagnostics got = row_count;
      taken := taken + got;
    end if;
    if upstream.quota is not null then
      update upstream_polls set used_until = used + step * taken where upstream_id = upstream.id;
    end if;
    rest := rest - taken;
  end loop;
end
$$;
