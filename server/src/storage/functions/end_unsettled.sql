-- As before, and what is known of a task is known of its row: that it was never carried out, or nothing.
create or replace function end_unsettled(ids uuid[], accounts_of uuid[], amounts bigint[], forgiven boolean)
returns table (id uuid, account_id uuid, outcome text, charged bigint, overrun bigint)
language sql volatile as $$
  with ended as materialized (
    select item.id, item.account_id, item.amount, ended.outcome, ended.charged, ended.overrun, ended.ended_now, ended.settled_at
    from end_calls(
      array(select distinct one from unnest(accounts_of) one), '{}', ids, accounts_of, amounts,
      array(select forgiven from unnest(ids)),
      array(select coalesce(amount, 0) from unnest(amounts) amount),
      array(select 0::bigint from unnest(ids)),
      array(select amount is not null and not forgiven from unnest(amounts) amount),
      array(select amount is null or forgiven from unnest(amounts) amount),
      array(select 0::bigint from unnest(ids)), array(select 0::bigint from unnest(ids)),
      array(select 0::bigint from unnest(ids)), array(select 0::bigint from unnest(ids))
    ) with ordinality ended (outcome, charged, overrun, free, ended_now, settled_at, place)
    join unnest(ids, accounts_of, amounts) with ordinality item (id, account_id, amount, place) using (place)
  ), tasks_ended as materialized (
    select end_tasks(
      array_agg(id),
      array_agg(case when amount is null then 'FAILED' else 'UNKNOWN' end),
      array_agg(null::bytea), array_agg(null::double precision), array_agg(null::integer), array_agg(null::integer),
      array_agg(case when amount is null then 'NotExecuted' end),
      array_agg(case when amount is null then 'The task was never carried out.' end),
      array_agg(true), max(settled_at)
    ) as done from ended
  )
  -- Reads what the tasks' part answers, because what nobody reads is not done.
  select id, account_id, outcome, charged, overrun from ended cross join tasks_ended
$$;
