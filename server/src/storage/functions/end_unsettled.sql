-- Ends calls that nobody runs, for whom they were made. What is known of a task is known of its row: that it was never carried out, or nothing.
create or replace function end_unsettled(ids uuid[], accounts_of uuid[], amounts bigint[], forgiven boolean)
returns table (id uuid, account_id uuid, outcome text, charged bigint, overrun bigint)
language sql volatile as $$
  with ended as materialized (
    select item.id, item.account_id, item.amount, ended.outcome, ended.charged, ended.overrun, ended.ended_now, ended.settled_at
    from end_attributed_calls(
      accounts_in => array(select distinct one from unnest(accounts_of) one),
      call_days => '{}',
      call_ids => ids,
      call_accounts => accounts_of,
      call_amounts => amounts,
      call_forgiven => array(select forgiven from unnest(ids)),
      call_values => array(select coalesce(amount, 0) from unnest(amounts) amount),
      call_upstream_costs => array(select 0::bigint from unnest(ids)),
      call_executed => array(select amount is not null and not forgiven from unnest(amounts) amount),
      call_failed => array(select amount is null or forgiven from unnest(amounts) amount),
      call_input_tokens => array(select 0::bigint from unnest(ids)),
      call_output_tokens => array(select 0::bigint from unnest(ids)),
      call_cache_read_tokens => array(select 0::bigint from unnest(ids)),
      call_cache_write_tokens => array(select 0::bigint from unnest(ids)),
      call_routes => '{}', ask_credentials => '{}', ask_groups => '{}', ask_counts_tokens => '{}'
    ) with ordinality ended (outcome, charged, overrun, free, ended_now, settled_at, window_keys, window_states, place)
    join unnest(ids, accounts_of, amounts) with ordinality item (id, account_id, amount, place) using (place)
  ), tasks_ended as materialized (
    select end_tasks_at(
      task_ids => array_agg(id),
      states => array_agg(case when amount is null then 'FAILED' else 'UNKNOWN' end),
      urls => '{}', lengths => '{}', counts => '{}', resolutions => '{}',
      codes => array_agg(case when amount is null then 'NotExecuted' end),
      messages => array_agg(case when amount is null then 'The task was never carried out.' end),
      scheduled_seconds => '{}', ended_seconds => '{}', ended_now => array_agg(true), at => max(settled_at)
    ) as done from ended
  )
  -- Reads what the tasks' part answers, because what nobody reads is not done.
  select id, account_id, outcome, charged, overrun from ended cross join tasks_ended
$$;
