-- Ends tasks that their upstream has said for so long not to know, at most so many: voided, their bound the operator's loss, and their places free.
create or replace function expire_unknown_tasks(after_seconds double precision, most integer) returns table (id uuid, overrun bigint)
language plpgsql volatile as $$
#variable_conflict use_column
begin
  return query select * from give_up_tasks(array(
    select id from tasks
      where ended_at is null and unknown_since < clock_timestamp() - make_interval(secs => after_seconds)
      order by unknown_since limit most
  ));
end
$$;
