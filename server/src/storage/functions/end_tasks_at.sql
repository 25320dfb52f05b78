-- Writes how tasks ended into their rows, those that are `ended_now` and not over yet. Rows are locked in the order of their ids, as
-- by whoever reschedules some. How many.
--
-- Times are Unix seconds, as the upstream tells them. A beginning lies within the life of the task. An end is believed where it comes
-- after the beginning and is an hour old at the most, since the task is kept for its caller from then on.
create or replace function end_tasks_at(
  task_ids uuid[], states text[], urls bytea[], lengths double precision[], counts integer[], resolutions integer[], codes text[],
  messages text[], scheduled_seconds double precision[], ended_seconds double precision[], ended_now boolean[], at timestamptz
) returns integer
language plpgsql volatile
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  done integer;
begin
  perform 1 from tasks where id = any (task_ids) order by id for no key update;
  update tasks set
    state = item.state, video_url = item.url, seconds = item.length, videos = item.count, resolution = item.resolution,
    code = item.code, message = item.message, prompt = case when item.state = 'SUCCEEDED' then tasks.prompt end,
    next_poll_at = null,
    scheduled_at = coalesce(tasks.scheduled_at,
      case when item.scheduled is not null then least(at, greatest(tasks.created_at, to_timestamp(item.scheduled))) end),
    ended_at = case
      when to_timestamp(item.finished) between
        greatest(tasks.created_at, tasks.scheduled_at, to_timestamp(item.scheduled), at - interval '1 hour') and at
      then to_timestamp(item.finished) else at
    end
  from unnest(task_ids, states, urls, lengths, counts, resolutions, codes, messages, scheduled_seconds, ended_seconds, ended_now)
    item (id, state, url, length, count, resolution, code, message, scheduled, finished, ended)
  where tasks.id = item.id and item.ended and tasks.ended_at is null;
  get diagnostics done = row_count;
  return done;
end
$$;
