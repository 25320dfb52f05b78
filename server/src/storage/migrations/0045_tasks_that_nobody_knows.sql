-- Since when the upstream has said that it does not know the task; null while it does. It ends once that has lasted for too long.
alter table tasks add column unknown_since timestamptz;
create index tasks_unknown on tasks (unknown_since) where unknown_since is not null and ended_at is null;

-- Ends tasks that their upstream has said for so long not to know, at most so many: voided, their bound the operator's loss, and their places free.
create or replace function expire_unknown_tasks(after_seconds double precision, most integer) returns table (id uuid, overrun bigint)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  due uuid[];
  ids uuid[];
  accounts_of uuid[];
  amounts bigint[];
begin
  due := array(select id from tasks
    where ended_at is null and unknown_since < clock_timestamp() - make_interval(secs => after_seconds)
    order by unknown_since limit most);
  perform 1 from accounts
  where accounts.id in (select account_id from holds where id = any (due))
  order by accounts.id for no key update;
  select array_agg(id), array_agg(account_id), array_agg(amount) into ids, accounts_of, amounts from holds where id = any (due);
  if ids is null then return; end if;
  return query select ended.id, ended.overrun from end_unsettled(ids, accounts_of, amounts, true) ended;
end
$$;

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

-- It names the columns of a task.
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
