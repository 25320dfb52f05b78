-- How far behind the questions are, in seconds, by upstream.
create or replace function poll_lags() returns table (upstream_id uuid, slot text, seconds double precision)
language sql stable
begin atomic
  select upstreams.id, upstreams.slot, greatest(0, extract(epoch from clock_timestamp() - due.at))::double precision
  from upstreams cross join lateral (
    select min(first.at) as at from (values (true), (false)) age (young) cross join lateral (
      select next_poll_at as at from tasks
      where tasks.upstream_id = upstreams.id and is_young = age.young and next_poll_at is not null
      order by next_poll_at limit 1
    ) first
  ) due
  where due.at is not null;
end;
