-- Reschedules tasks of whose times nothing was told, for processes of the last release: see reschedule_tasks_at.
create or replace function reschedule_tasks(task_ids uuid[], states text[], waits double precision[], young_seconds double precision) returns void
language plpgsql volatile as $$
begin
  perform reschedule_tasks_at(
    task_ids => task_ids, states => states, waits => waits, scheduled_seconds => '{}', young_seconds => young_seconds
  );
end
$$;
