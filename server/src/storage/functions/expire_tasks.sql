-- Ends tasks of which nothing final was heard for so long, at most so many: voided, their bound the operator's loss. And
-- those whose call has ended without them: it began too late for its caller, and was voided by who could not know whether
-- it had begun. No upstream was asked for those.
create or replace function expire_tasks(after_seconds double precision, most integer) returns table (id uuid, overrun bigint)
language plpgsql volatile as $$
#variable_conflict use_column
begin
  update tasks set
    state = 'FAILED', code = 'NotExecuted', message = 'The task was never carried out.',
    prompt = null, next_poll_at = null, ended_at = clock_timestamp()
  where ctid = any (array(
    select ctid from tasks
    where state = 'CREATING' and not exists (select from holds where holds.id = tasks.id)
    limit most for update skip locked
  ));
  return query select * from give_up_tasks(array(
    select id from tasks where ended_at is null and created_at < clock_timestamp() - make_interval(secs => after_seconds)
      order by created_at limit most
  ));
end
$$;
