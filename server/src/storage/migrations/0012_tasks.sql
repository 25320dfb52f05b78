-- Calls that take minutes. A task is a call whose hold outlives the process that began it: its row says what is known of
-- it, and when its upstream is asked next. The row is made by the statement that begins the call, and reaches its end in
-- the statement that settles it.

-- A task goes on without a process: then nobody owns its hold.
alter table holds alter column owner_id drop not null;

create or replace function forget_owners(ended_before timestamptz) returns void
language sql volatile as $$
  delete from owners where lease_until < ended_before and not exists (select from holds where holds.owner_id = owners.id);
  insert into owners (id, lease_until, renew_by, held_since)
  select distinct owner_id, clock_timestamp(), clock_timestamp(), clock_timestamp() from holds
  where unsettled_at is null and owner_id is not null and not exists (select from owners where owners.id = holds.owner_id)
  on conflict (id) do nothing
$$;

-- As before, and what has been given to its task is nobody's orphan.
create or replace function mark_unsettled(ids uuid[], of uuid) returns table (id uuid, account_id uuid, owner_id uuid)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  at timestamptz;
begin
  perform 1 from accounts
  where accounts.id in (select holds.account_id from holds where holds.id = any (ids))
  order by accounts.id for no key update;
  at := clock_timestamp();

  return query
  with marked as (
    update holds set unsettled_at = at
    where holds.id = any (ids) and unsettled_at is null
      and case
        when of is null then owner_id is not null and not exists (select from owners where owners.id = holds.owner_id and lease_until >= at)
        else owner_id = of
      end
    returning holds.id, holds.account_id, holds.owner_id
  ), freed as (
    delete from claims using marked where claims.call_id = marked.id and claims.ends_with_owner
  )
  select marked.id, marked.account_id, marked.owner_id from marked;
end
$$;

create table tasks (
  -- The call's, by which its caller knows it.
  id uuid primary key,
  account_id uuid not null,
  credential_id uuid not null,
  model text not null,
  -- CREATING: nobody knows yet whether an upstream has it. UNKNOWN: it ended without our learning how.
  state text not null
    check (state in ('CREATING', 'PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELED', 'UNKNOWN')),
  -- Who has it, and its name there; null where that is not known.
  upstream_id uuid,
  slot text,
  mode text check (mode in ('live', 'test')),
  upstream_task text check (length(upstream_task) between 1 and 200),
  -- Sealed, each as this task's alone.
  prompt bytea,
  video_url bytea,
  -- What the upstream says that it made.
  seconds double precision check (seconds >= 0),
  videos integer check (videos >= 0),
  resolution integer check (resolution > 0),
  -- Why it failed.
  code text check (length(code) <= 200),
  message text check (length(message) <= 2000),
  created_at timestamptz not null,
  scheduled_at timestamptz,
  ended_at timestamptz,
  -- Null where there is nobody to ask, or nothing to ask any more. Who asks moves it to when others may ask again, should
  -- the asker die.
  next_poll_at timestamptz,
  -- Younger than the time in which tasks end as a rule, when it was last asked for: those are asked for first.
  is_young boolean not null default true,
  -- How often its caller has looked, since when.
  reads_since timestamptz,
  reads integer not null default 0,
  constraint someone_is_asked check (next_poll_at is null or upstream_task is not null),
  constraint ended_is_final check ((ended_at is not null) = (state in ('SUCCEEDED', 'FAILED', 'CANCELED', 'UNKNOWN'))),
  constraint ended_is_not_asked_for check (ended_at is null or next_poll_at is null)
) with (fillfactor = 70);

create index tasks_due on tasks (upstream_id, is_young, next_poll_at) where next_poll_at is not null;
create index tasks_of_credential on tasks (credential_id, id);
create index tasks_creating on tasks (id) where state = 'CREATING';
-- One job there is one task here, so that nobody is charged for another's.
create unique index tasks_by_name on tasks (upstream_id, upstream_task) where upstream_task is not null;
create index tasks_open on tasks (created_at) where ended_at is null;
create index tasks_ended on tasks (ended_at) where ended_at is not null;

-- How many questions about tasks a second our account there may ask. Null: nobody counts.
alter table upstreams add column polls_per_second integer check (polls_per_second > 0);

-- Up to when the questions that were asked have used up the pace of an upstream. A crash of PostgreSQL forgets it, which
-- lets a few more through.
create unlogged table upstream_polls (
  upstream_id uuid primary key,
  used_until timestamptz not null
) with (fillfactor = 50);

create or replace function forget_quota() returns trigger
language plpgsql as $$
begin
  delete from upstream_quotas where upstream_id = old.id;
  delete from upstream_polls where upstream_id = old.id;
  return null;
end
$$;

-- Gives a task's call from the process that began it to the task itself, once it is known who has it: `done`. What was taken
-- for an orphan meanwhile is none any more. `ended` where the call has ended, `named` where the task has another name, which an
-- operator may correct, and `taken` where another task has this one.
create function hand_over_task(
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

-- Some of an upstream's tasks of one age that are due, those that are overdue the longest first. Nobody else is given them
-- while the lease lasts, and nobody waits for who is at one.
create function claim_due(upstream uuid, young boolean, at timestamptz, most integer, lease_seconds double precision)
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

-- Tasks that are to be asked for now, within the pace of each upstream. Three of four are young ones, whose callers wait
-- for them; whatever is not used by one age is the other's, so that none starves.
create function claim_tasks(most integer, lease_seconds double precision) returns setof tasks
language plpgsql volatile as $$
declare
  upstream record;
  at timestamptz;
  used timestamptz;
  step interval;
  granted integer;
  taken integer;
  rest integer := most;
  got integer;
begin
  -- In one order, as whoever adds the same ones waits for us: in the loop's, two could wait for each other.
  insert into upstream_polls (upstream_id, used_until)
  select id, '-infinity' from upstreams
  where polls_per_second is not null and not exists (select from upstream_polls where upstream_id = upstreams.id)
  order by id
  on conflict do nothing;

  -- The first of each age is found by the index, whether it is due or not: a search for one that is due would read
  -- everything that is open while none is.
  for upstream in
    select id, polls_per_second as quota from upstreams
    where clock_timestamp() >= least(
      (select min(next_poll_at) from tasks where upstream_id = upstreams.id and is_young),
      (select min(next_poll_at) from tasks where upstream_id = upstreams.id and not is_young)
    )
    order by random()
  loop
    exit when rest <= 0;
    granted := rest;
    at := clock_timestamp();
    if upstream.quota is not null then
      -- Who finds it locked leaves this upstream to the other.
      select used_until into used from upstream_polls where upstream_id = upstream.id for update skip locked;
      continue when not found;
      at := clock_timestamp();
      -- An eighth of a second's worth may go at once. The steps are so long that with it no second has more than the quota.
      step := make_interval(secs => 1.0 / greatest(upstream.quota - ceil(upstream.quota / 8.0), upstream.quota / 2.0));
      -- A clock that was set back must not stop us for as long.
      if used > at + interval '2 seconds' then used := at; end if;
      used := greatest(used, at - step * ceil(upstream.quota / 8.0));
      granted := least(granted, floor(extract(epoch from at - used) / extract(epoch from step))::integer);
      continue when granted <= 0;
    end if;

    return query select * from claim_due(upstream.id, false, at, floor(granted / 4.0 + random())::integer, lease_seconds);
    get diagnostics taken = row_count;
    return query select * from claim_due(upstream.id, true, at, granted - taken, lease_seconds);
    get diagnostics got = row_count;
    taken := taken + got;
    if taken < granted then
      return query select * from claim_due(upstream.id, false, at, granted - taken, lease_seconds);
      get diagnostics got = row_count;
      taken := taken + got;
    end if;
    if upstream.quota is not null then
      update upstream_polls set used_until = used + step * taken where upstream_id = upstream.id;
    end if;
    rest := rest - taken;
  end loop;
end
$$;

-- Says when tasks that go on are asked for again. What has ended meanwhile stays as it is, and what has been seen running
-- does not wait again, since answers overtake each other. Rows are locked in the order of their ids, as by whoever ends some.
create function reschedule_tasks(task_ids uuid[], states text[], waits double precision[], young_seconds double precision) returns void
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
    scheduled_at = coalesce(scheduled_at, case when item.state = 'RUNNING' then at end),
    next_poll_at = at + make_interval(secs => item.wait),
    is_young = created_at > at - make_interval(secs => young_seconds)
  from unnest(task_ids, states, waits) item (id, state, wait)
  where tasks.id = item.id and tasks.next_poll_at is not null;
end
$$;

-- How far behind the questions are, in seconds, by upstream.
create function poll_lags() returns table (upstream_id uuid, slot text, seconds double precision)
language sql stable
begin atomic
  select upstreams.id, upstreams.slot, greatest(0, extract(epoch from clock_timestamp() - due.at))::double precision
  from upstreams cross join lateral (
    select min(first.at) as at from (values (true), (false)) age (young) cross join lateral (
      select next_poll_at as at from tasks
      where tasks.upstream_id = upstreams.id and is_young = age.young and next_poll_at is not null
      order by next_poll_at limit 1
    ) first
  ) due
  where due.at is not null;
end;

-- A look of its caller's at a task: at most so many in a second. `paced` is false where it comes too soon.
create function read_task(task uuid, credential uuid, most integer, kept_seconds double precision)
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

-- Writes how tasks ended into their rows, those that are `ended_now` and not over yet. Rows are locked in the order of their ids, as
-- by whoever reschedules some. How many.
create function end_tasks(
  task_ids uuid[], states text[], urls bytea[], lengths double precision[], counts integer[], resolutions integer[], codes text[],
  messages text[], ended_now boolean[], at timestamptz
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
    next_poll_at = null, ended_at = at
  from unnest(task_ids, states, urls, lengths, counts, resolutions, codes, messages, ended_now)
    item (id, state, url, length, count, resolution, code, message, ended)
  where tasks.id = item.id and item.ended and tasks.ended_at is null;
  get diagnostics done = row_count;
  return done;
end
$$;

-- As before, and what is known of a task is known of its row: that it was never carried out, or nothing.
create or replace function end_unsettled(ids uuid[], accounts_of uuid[], amounts bigint[], forgiven boolean)
returns table (id uuid, account_id uuid, outcome text, charged bigint, overrun bigint)
language sql volatile as $$
  with ended as materialized (
    select item.id, item.account_id, item.amount, ended.outcome, ended.charged, ended.overrun, ended.ended_now, ended.settled_at
    from end_calls(
      array(select distinct one from unnest(accounts_of) one), '{}', ids, accounts_of, amounts,
      array(select forgiven from unnest(ids)),
      array(select coalesce(amount, 0) from unnest(amounts) amount),
      array(select 0::bigint from unnest(ids)),
      array(select amount is not null and not forgiven from unnest(amounts) amount),
      array(select amount is null or forgiven from unnest(amounts) amount),
      array(select 0::bigint from unnest(ids)), array(select 0::bigint from unnest(ids)),
      array(select 0::bigint from unnest(ids)), array(select 0::bigint from unnest(ids))
    ) with ordinality ended (outcome, charged, overrun, free, ended_now, settled_at, place)
    join unnest(ids, accounts_of, amounts) with ordinality item (id, account_id, amount, place) using (place)
  ), tasks_ended as materialized (
    select end_tasks(
      array_agg(id),
      array_agg(case when amount is null then 'FAILED' else 'UNKNOWN' end),
      array_agg(null::bytea), array_agg(null::double precision), array_agg(null::integer), array_agg(null::integer),
      array_agg(case when amount is null then 'NotExecuted' end),
      array_agg(case when amount is null then 'The task was never carried out.' end),
      array_agg(true), max(settled_at)
    ) as done from ended
  )
  -- Reads what the tasks' part answers, because what nobody reads is not done.
  select id, account_id, outcome, charged, overrun from ended cross join tasks_ended
$$;

-- Ends tasks of which nothing final was heard for so long, at most so many: voided, their bound the operator's loss. And
-- those whose call has ended without them: it began too late for its caller, and was voided by who could not know whether
-- it had begun. No upstream was asked for those.
create function expire_tasks(after_seconds double precision, most integer) returns table (id uuid, overrun bigint)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  due uuid[];
  ids uuid[];
  accounts_of uuid[];
  amounts bigint[];
begin
  update tasks set
    state = 'FAILED', code = 'NotExecuted', message = 'The task was never carried out.',
    prompt = null, next_poll_at = null, ended_at = clock_timestamp()
  where ctid = any (array(
    select ctid from tasks
    where state = 'CREATING' and not exists (select from holds where holds.id = tasks.id)
    limit most for update skip locked
  ));
  due := array(select id from tasks where ended_at is null and created_at < clock_timestamp() - make_interval(secs => after_seconds)
    order by created_at limit most);
  perform 1 from accounts
  where accounts.id in (select account_id from holds where id = any (due))
  order by accounts.id for no key update;
  select array_agg(id), array_agg(account_id), array_agg(amount) into ids, accounts_of, amounts from holds where id = any (due);
  if ids is null then return; end if;
  return query select ended.id, ended.overrun from end_unsettled(ids, accounts_of, amounts, true) ended;
end
$$;

-- What a second of video costs, by its resolution: {"720P": "0.10"}. Then tokens and pictures cost nothing beside it.
create function are_video_prices(prices jsonb) returns boolean
language sql immutable
return jsonb_typeof(prices) = 'object'
  and prices <> '{}'
  and not jsonb_path_exists(
    prices, 'strict $.* ? (@.type() != "string" || !(@ like_regex "^[0-9]{1,18}([.][0-9]{1,18})?$"))'
  )
  and not jsonb_path_exists(prices, 'strict $.keyvalue() ? (!(@.key like_regex "^[1-9][0-9]{2,3}P$"))');

alter table model_prices
  add column videos jsonb constraint videos_are_readable check (are_video_prices(videos)),
  add column provider_videos jsonb constraint provider_videos_are_readable check (are_video_prices(provider_videos)),
  drop constraint one_way_to_pay,
  add constraint one_way_to_pay check (
    (images is null and videos is null) or (input = 0 and output = 0 and (images is null or videos is null))
  );

alter table model_routes
  drop constraint model_routes_protocol_check,
  add constraint model_routes_protocol_check
    check (protocol in ('openai', 'anthropic', 'gemini', 'openai_embeddings', 'openai_images', 'video'));
