-- A look of its caller's at a task: at most so many in a second. `paced` is false where it comes too soon.
create or replace function read_task(task uuid, credential uuid, most integer, kept_seconds double precision)
returns table (task_row tasks, paced boolean)
language plpgsql volatile as $$
declare
  at constant timestamptz := clock_timestamp();
  found tasks;
begin
  select * into found from tasks
  where id = task and credential_id = credential and coalesce(ended_at > at - make_interval(secs => kept_seconds), true);
  if found.id is null then return; end if;
  update tasks set
    reads = case when reads_since > at - interval '1 second' then reads + 1 else 1 end,
    reads_since = case when reads_since > at - interval '1 second' then reads_since else at end
  where id = task and not (coalesce(reads_since > at - interval '1 second', false) and reads >= most)
  returning * into found;
  paced := found.id is not null;
  if not paced then select * into found from tasks where id = task; end if;
  task_row := found;
  return next;
end
$$;
