-- What calls cost the operator beyond what they were charged, where there is evidence for it: the upstream reported more than was
-- held, or delivered what can't be read. What is only presumed (broken connections, timeouts, calls that nobody resolved) is in
-- the overrun of its charge and not here, because an outage must never look like a loss that somebody causes.
--
-- The statement that ends a call inserts the row. Nobody updates one, and none is shared by accounts: processes add them up.
create table losses (
  -- The call.
  id uuid primary key,
  account_id uuid not null,
  -- What was sold, the slot that was asked, and the mode: `gpt@openai:live`.
  route text not null,
  nanos bigint not null check (nanos > 0),
  -- What the upstream says that the whole call used, at the prices of the call; null where it says nothing that can be read.
  claim bigint,
  at timestamptz not null
);

-- Read every second from a few minutes ago on; all columns that are added up are in it.
create index losses_by_time on losses (at) include (route, account_id, nanos);

-- An operator has looked: losses up to this moment no longer count, of an account at a route or of all accounts there.
create table loss_releases (
  id uuid primary key,
  route text not null,
  account_id uuid,
  actor text not null,
  at timestamptz not null default clock_timestamp()
);

create index loss_releases_of_route on loss_releases (route, at);
create index loss_releases_by_time on loss_releases (at);

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

-- Reschedules tasks of whose times nothing was told, for processes of the last release: see reschedule_tasks_at.
create or replace function reschedule_tasks(task_ids uuid[], states text[], waits double precision[], young_seconds double precision) returns void
language plpgsql volatile as $$
begin
  perform reschedule_tasks_at(
    task_ids => task_ids, states => states, waits => waits, scheduled_seconds => '{}', young_seconds => young_seconds
  );
end
$$;

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
    state = case when tasks.state = 'RUNNING' then tasks.state else item.state end,
    scheduled_at = coalesce(scheduled_at,
      case when item.state = 'RUNNING' then least(at, greatest(created_at, coalesce(to_timestamp(item.scheduled), at))) end),
    next_poll_at = at + make_interval(secs => item.wait),
    is_young = created_at > at - make_interval(secs => young_seconds)
  from unnest(task_ids, states, waits, scheduled_seconds) item (id, state, wait, scheduled)
  where tasks.id = item.id and tasks.next_poll_at is not null;
end
$$;

-- What is to be told to somebody outside because of a change: a mail, a webhook. The row is written in the transaction of the change,
-- so that neither is there without the other; a worker delivers it at least once. Receivers know a repetition by the id.
create table outbox (
  id uuid primary key,
  kind text not null check (kind ~ '^[a-z][a-z0-9_.-]{0,62}$'),
  -- Who receives it, as far as its kind tells receivers apart. No secret.
  destination text not null check (length(destination) <= 255),
  -- Those of one lane share a bound on deliveries at once, so that a slow receiver keeps nobody else waiting.
  lane text not null generated always as (kind || ' ' || destination) stored,
  -- What must be told once only: the same again is no second row while this one is kept.
  key text check (length(key) <= 255),
  -- JSON, or the same sealed where its kind says so; neither once it was delivered.
  payload text,
  sealed bytea,
  -- How often it was taken up. Whoever took it up last is told apart by it.
  attempts integer not null default 0,
  failure text check (length(failure) <= 500),
  created_at timestamptz not null default clock_timestamp(),
  -- When it is to be taken up (again): while somebody is at it, when that lease ends.
  due_at timestamptz default clock_timestamp(),
  delivered_at timestamptz,
  -- A dead letter: given up, until an operator has it tried again or drops it.
  died_at timestamptz,
  constraint outbox_state check (num_nonnulls(due_at, delivered_at, died_at) = 1),
  constraint outbox_payload check (num_nonnulls(payload, sealed) = case when delivered_at is null then 1 else 0 end)
);

create index outbox_due on outbox (lane, due_at) where due_at is not null;
create unique index outbox_keys on outbox (kind, key) where key is not null;
create index outbox_undelivered on outbox (kind, created_at) where delivered_at is null;
create index outbox_delivered on outbox (delivered_at) where delivered_at is not null;
create index outbox_dead on outbox (died_at) where died_at is not null;

-- How often keys were refused, by reason and hour. Processes count in memory and add to the rows once a minute.
create table refusals (
  -- The nil UUID for keys that were too many at once to be told apart.
  credential_id uuid not null,
  hour timestamptz not null,
  -- A code of our faults.
  reason text not null,
  count bigint not null check (count > 0),
  primary key (credential_id, hour, reason)
);

create index refusals_by_hour on refusals (hour);
