-- UNKNOWN is what an upstream says that does not know the task any more, and UNANSWERED that nothing was heard of it: neither is a state of it here.
-- Says when tasks that go on are asked for again. What has ended meanwhile stays as it is, and what has been seen running
-- does not wait again, since answers overtake each other. When it began to run is Unix seconds, as the upstream tells it, within the
-- life of the task; the moment at which we hear of it where nothing is told. Rows are locked in the order of their ids, as by whoever ends some.
create or replace function reschedule_tasks_at(
  task_ids uuid[], states text[], waits double precision[], scheduled_seconds double precision[], young_seconds double precision
) returns void
language plpgsql volatile
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  at constant timestamptz := clock_timestamp();
begin
  perform 1 from tasks where id = any (task_ids) order by id for no key update;
  update tasks set
    state = case when tasks.state = 'RUNNING' or item.state in ('UNKNOWN', 'UNANSWERED') then tasks.state else item.state end,
    unknown_since = case when item.state = 'UNKNOWN' then coalesce(unknown_since, at)
      when item.state <> 'UNANSWERED' then null else unknown_since end,
    scheduled_at = coalesce(scheduled_at,
      case when item.state = 'RUNNING' then least(at, greatest(created_at, coalesce(to_timestamp(item.scheduled), at))) end),
    next_poll_at = at + make_interval(secs => item.wait),
    is_young = created_at > at - make_interval(secs => young_seconds)
  from unnest(task_ids, states, waits, scheduled_seconds) item (id, state, wait, scheduled)
  where tasks.id = item.id and tasks.next_poll_at is not null;
end
$$;
