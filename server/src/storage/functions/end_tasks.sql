-- Ends tasks of whose times nothing was told, for processes of the last release: see end_tasks_at.
create or replace function end_tasks(
  task_ids uuid[], states text[], urls bytea[], lengths double precision[], counts integer[], resolutions integer[], codes text[],
  messages text[], ended_now boolean[], at timestamptz
) returns integer
language plpgsql volatile as $$
begin
  return end_tasks_at(
    task_ids => task_ids, states => states, urls => urls, lengths => lengths, counts => counts, resolutions => resolutions,
    codes => codes, messages => messages, scheduled_seconds => '{}', ended_seconds => '{}', ended_now => ended_now, at => at
  );
end
$$;
