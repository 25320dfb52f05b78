-- Gives a task's call from the process that began it to the task itself, once it is known who has it: `done`. What was taken
-- for an orphan meanwhile is none any more. `ended` where the call has ended, `named` where the task has another name, which an
-- operator may correct, and `taken` where another task has this one.
create or replace function hand_over_task(
  task uuid, upstream uuid, slot_in text, mode_in text, name text, state_in text, first_poll_seconds double precision,
  corrects boolean default false
) returns text
language plpgsql volatile as $$
declare
  account uuid;
  at timestamptz;
  name_before text;
begin
  select account_id into account from tasks where id = task;
  perform 1 from accounts where id = account for no key update;
  at := clock_timestamp();
  perform 1 from holds where id = task;
  if not found then return 'ended'; end if;
  select upstream_task into name_before from tasks where id = task and ended_at is null;
  if not found then return 'ended'; end if;
  -- Whatever is said late, what has been running does not wait again.
  if name_before is not null and not corrects then
    if name_before <> name then return 'named'; end if;
    update tasks set state = 'RUNNING', scheduled_at = at where id = task and state = 'PENDING' and state_in = 'RUNNING';
    return 'done';
  end if;
  update tasks set
    upstream_id = upstream, slot = slot_in, mode = mode_in, upstream_task = name,
    state = case when state = 'RUNNING' then state else state_in end,
    scheduled_at = coalesce(scheduled_at, case when state_in = 'RUNNING' then at end),
    next_poll_at = at + make_interval(secs => first_poll_seconds)
  where id = task;
  update holds set owner_id = null, unsettled_at = null where id = task;
  return 'done';
exception when unique_violation then
  return 'taken';
end
$$;
