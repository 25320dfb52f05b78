-- Releases what calls held of allowances and charges them what they cost, each in the period that stands with a credential where the call began in that one, and else in
-- the last one that had begun by then: it was made, at the latest, for the call. One call may have several allowances: then there is one of everything else. Whoever asks
-- has the account's lock.
create or replace function settle_allowances(ids uuid[], begun timestamptz[], released bigint[], charges_in bigint[]) returns void
language plpgsql volatile as $$
begin
  with part as materialized (
    select item.id, own.id as meter, begun[call] as begun_at, released[call] as held, charges_in[call] as charge
    from unnest(ids) with ordinality item (id, place)
    cross join lateral (select case when cardinality(begun) = 1 then 1 else place end) one (call)
    left join lateral (
      select meter.id from credentials meter
      where meter.budget_id = item.id and meter.budget_starts_at <= begun[call] and meter.budget_ends_at > begun[call] limit 1
    ) own on true
  ), metered as (
    update credentials row set budget_held = row.budget_held - change.held, budget_charged = row.budget_charged + change.charge
    from (select meter, sum(held)::bigint as held, sum(charge)::bigint as charge from part where meter is not null group by meter) change
    where row.id = any (array[change.meter])
  )
  update kept_periods row set held = row.held - change.held, charged = row.charged + change.charge
  from (
    select part.id, period.starts_at, sum(part.held)::bigint as held, sum(part.charge)::bigint as charge
    from part cross join lateral (
      select starts_at from kept_periods where allowance_id = part.id and starts_at <= part.begun_at order by starts_at desc limit 1
    ) period
    where part.meter is null
    group by part.id, period.starts_at
  ) change
  where row.allowance_id = any (array[change.id]) and row.starts_at = any (array[change.starts_at]);
end
$$;
