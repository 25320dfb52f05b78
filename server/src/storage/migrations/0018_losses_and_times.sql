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

-- Audit: who changed what, from where, with or without a workspace. A row is written in the transaction of the change. The last
-- release goes on inserting (id, actor, action, workspace_id, subject, detail).
alter table audit
  alter column id set default gen_random_uuid(),
  alter column workspace_id drop not null,
  -- Models, routes of losses and operations have names, not ids.
  alter column subject type text,
  -- What differs: null before something was made, null after it was removed. Never a secret, nor the hash or the seal of one.
  add column before jsonb,
  add column after jsonb,
  -- From where: the machine of a command line, the address of a request.
  add column origin jsonb not null default '{}',
  -- Not valid: what older versions wrote stays as it is.
  add constraint actor_is_kind_and_name check (actor ~ '^(operator|member|worker|service) .') not valid;

create index audit_by_time on audit (at, id);
create index audit_of_subject on audit (subject, at);

create trigger audit_is_immutable before update or delete on audit
for each row execute function refuse_change();

create trigger audit_is_kept before truncate on audit
for each statement execute function refuse_change();

-- To which workspace something belongs: itself, one of its accounts or one of its keys. Null for what is nobody's.
create or replace function workspace_of(one uuid) returns uuid
language sql stable as $$
  select coalesce(
    (select id from workspaces where id = one or live_account_id = one or test_account_id = one),
    (select workspace_id from api_keys where id = one)
  )
$$;

-- END: posts or voids a batch of calls, once each: releases the hold, books the charge and the usage, pays debt with
-- what became free, takes what expired while it was held, corrects token windows, ends or keeps claims. An id that has
-- ended answers as the first time; an id that never began leaves a tombstone; an id of another account, or of none, is
-- left alone and answered as misplaced. What is to be posted after a void is the operator's loss.
--
-- What calls reserved of token windows and did not use is given back, and what they used beyond it is added: to the window that
-- they were begun in, if no other has begun since. The windows as they are then are told with the first row.
create or replace function end_calls_with_rates(
  accounts_in uuid[],
  call_days date[],
  call_ids uuid[],
  call_accounts uuid[],
  -- The amount to charge, or null to void.
  call_amounts bigint[],
  -- Voided although the upstream was asked, or may have been: the amount is overrun, and nothing is charged.
  call_forgiven boolean[],
  call_values bigint[],
  call_upstream_costs bigint[],
  call_executed boolean[],
  call_failed boolean[],
  call_input_tokens bigint[],
  call_output_tokens bigint[],
  call_cache_read_tokens bigint[],
  call_cache_write_tokens bigint[],
  -- Windows that somebody asks for, each once, and whether it counts tokens.
  ask_credentials uuid[],
  ask_groups text[],
  ask_counts_tokens boolean[]
) returns table (
  outcome text,
  charged bigint,
  overrun bigint,
  free bigint,
  -- Whether it was this statement that ended the call.
  ended_now boolean,
  settled_at timestamptz,
  -- Every window that is asked for, if there is one, and perhaps others.
  -- Its credential and its group, with a space between.
  window_keys text[],
  -- Its start in Unix seconds, its requests and its tokens.
  window_states double precision[][]
)
language plpgsql volatile
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set enable_hashagg = off
set plan_cache_mode = force_generic_plan
as $$
declare
  at timestamptz;
  calls constant integer := cardinality(call_ids);
  -- The accounts that there are, in the order of their ids, in which they are locked.
  locked uuid[];
  account_rows tid[];
  account_free bigint[];
  account_debt bigint[];
  account_promo bigint[];
  account_lapsed bigint[];
  -- Sums over the batch's calls of an account, and what follows from them.
  account_charge bigint[] := array_fill(0::bigint, array[cardinality(accounts_in)]);
  account_release bigint[] := account_charge;
  account_debt_paid bigint[] := account_charge;
  account_expired bigint[] := account_charge;
  -- The holds that end, each at its call's place.
  ending holds[];
  own holds;
  before record;
  before_accounts uuid[];
  before_outcomes text[];
  before_charges bigint[];
  before_overruns bigint[];
  -- How those end that end now.
  call_outcomes text[];
  call_charges bigint[] := array_fill(0::bigint, array[calls]);
  call_promos bigint[] := call_charges;
  has_allowances boolean := false; has_tokens boolean := false; has_claims boolean := false;
  has_entries boolean := false; has_late boolean := false; has_ended_before boolean := false;
  claims_kept tid[];
  claims_ended tid[];
  asks constant boolean := ask_groups <> '{}';
  told double precision[];
  account integer; freed bigint; allowance uuid; token_group text;
begin
  -- Who waits for a lock is given the row as it is then. Of anything else a statement that locks sees what was there before
  -- it waited: so this one reads what it locks, and nothing else.
  if cardinality(accounts_in) = 1 then
    select array[id], array[ctid], array[credited + debt - row.charged - held], array[debt], array[promo], array[lapsed]
    into locked, account_rows, account_free, account_debt, account_promo, account_lapsed
    from accounts row where id = accounts_in[1] for no key update;
  else
    select array_agg(id), array_agg(ctid), array_agg(credited + debt - row.charged - held), array_agg(debt), array_agg(promo), array_agg(lapsed)
    into locked, account_rows, account_free, account_debt, account_promo, account_lapsed
    from (select ctid, * from accounts where id = any (accounts_in) order by id for no key update) row;
  end if;
  at := clock_timestamp();
  settled_at := at;

  if calls = 1 then
    ending := array[(select holds from holds where id = call_ids[1])];
  else
    ending := array(
      select row.hold from unnest(call_ids) item (id)
      left join lateral (select holds as hold from holds where id = item.id limit 1) row on true
    );
  end if;

  -- Seldom: a repeated ending, or one of a call that never began.
  if array_position(ending, null) is not null then
    has_ended_before := true;
    for before in select * from ended_among(call_ids, call_days) loop
      before_accounts[array_position(call_ids, before.id)] := before.account_id;
      before_outcomes[array_position(call_ids, before.id)] := before.outcome;
      before_charges[array_position(call_ids, before.id)] := before.amount;
      before_overruns[array_position(call_ids, before.id)] := before.overrun;
    end loop;
  end if;

  for i in 1 .. calls loop
    account := array_position(locked, call_accounts[i]);
    own := ending[i];
    if own.account_id = locked[account] then
      if call_forgiven[i] or call_amounts[i] is null then
        call_outcomes[i] := 'voided';
      else
        call_outcomes[i] := 'posted';
        call_charges[i] := least(call_amounts[i], own.amount);
        account_charge[account] := account_charge[account] + call_charges[i];
        -- Promotional credit is spent first.
        if account_promo[account] > 0 then
          call_promos[i] := least(account_promo[account], call_charges[i]);
          account_promo[account] := account_promo[account] - call_promos[i];
        end if;
      end if;
      account_release[account] := account_release[account] + own.amount;
      has_allowances := has_allowances or own.allowances <> '{}';
      has_tokens := has_tokens or own.token_groups <> '{}';
      has_claims := has_claims or own.claims;
    elsif account is null or coalesce(own.account_id, before_accounts[i]) <> call_accounts[i] then
      -- Misplaced.
      ending[i] := null;
      before_outcomes[i] := null;
    elsif before_outcomes[i] is null then
      call_outcomes[i] := 'voided';
    elsif before_outcomes[i] = 'voided' and coalesce(call_amounts[i], 0) <> before_overruns[i] then
      has_late := true;
    end if;
  end loop;

  -- What the endings release pays debt first; what is left of it may be promotional credit that has expired meanwhile.
  -- The endings of a batch happen at once: what they charge is spent before what they release is taken.
  for place in 1 .. coalesce(cardinality(locked), 0) loop
    freed := account_release[place] - account_charge[place];
    account_free[place] := account_free[place] + freed;
    if account_debt[place] > 0 then
      account_debt_paid[place] := least(account_debt[place], account_free[place]);
      account_free[place] := account_free[place] - account_debt_paid[place];
      has_entries := true;
    end if;
    if account_lapsed[place] > 0 then
      account_lapsed[place] := account_lapsed[place] - least(account_lapsed[place], account_charge[place]);
      account_expired[place] := least(account_lapsed[place], account_free[place], freed);
      account_free[place] := account_free[place] - account_expired[place];
      has_entries := true;
    end if;
  end loop;

  if cardinality(locked) = 1 then
    update accounts row set
      charged = row.charged + account_charge[1],
      held = row.held - account_release[1],
      credited = row.credited - account_expired[1],
      promo = account_promo[1] - account_expired[1],
      lapsed = account_lapsed[1] - account_expired[1],
      debt = row.debt - account_debt_paid[1]
    where row.ctid = account_rows[1] and account_release[1] > 0;
  else
    update accounts row set
      charged = row.charged + account_charge[place],
      held = row.held - account_release[place],
      credited = row.credited - account_expired[place],
      promo = account_promo[place] - account_expired[place],
      lapsed = account_lapsed[place] - account_expired[place],
      debt = row.debt - account_debt_paid[place]
    from unnest(account_rows) with ordinality item (ctid, place)
    where row.ctid = item.ctid and account_release[place] > 0;
  end if;

  if has_entries then
    insert into entries (id, account_id, kind, credited, promo, debt, entered_at)
    select gen_random_uuid(), id, 'debt_payment', 0, 0, -account_debt_paid[place], at
    from unnest(locked) with ordinality item (id, place) where account_debt_paid[place] > 0
    union all
    select gen_random_uuid(), id, 'expiry', -account_expired[place], -account_expired[place], 0, at
    from unnest(locked) with ordinality item (id, place) where account_expired[place] > 0;
  end if;

  if has_late then
    insert into entries (id, account_id, kind, overrun, corrects, entered_at)
    select id, call_accounts[i], 'late_settlement', coalesce(call_amounts[i], 0) - before_overruns[i], id, at
    from unnest(call_ids) with ordinality item (id, i)
    where before_outcomes[i] = 'voided' and coalesce(call_amounts[i], 0) <> before_overruns[i]
    on conflict (id) do nothing;
  end if;

  -- A call of an allowance's period holds in the last one that had begun by then: it was made, at the latest, for the call.
  -- The window of a call still stands if none has begun since. Of one that has, nothing changes; it is told all the same.
  if calls = 1 and call_outcomes[1] is not null and own.id is not null then
    foreach allowance in array own.allowances loop
      update allowance_periods row set held = row.held - own.amount, charged = row.charged + call_charges[1]
      where row.ctid = (
        select ctid from allowance_periods where allowance_id = allowance and starts_at <= own.begun_at order by starts_at desc limit 1
      );
    end loop;
    foreach token_group in array own.token_groups loop
      update windows row set tokens = case when row.started_at <= own.begun_at then greatest(0, row.tokens
        + call_input_tokens[1] + call_output_tokens[1] + call_cache_read_tokens[1] + call_cache_write_tokens[1] - own.tokens_estimated)
        else row.tokens end
      where row.credential_id = own.credential_id and row.limit_group = token_group
      returning array[date_part('epoch', row.started_at), row.requests, row.tokens] into told;
      if found and asks then
        window_keys := window_keys || (own.credential_id || ' ' || token_group);
        window_states := window_states || array[told];
      end if;
    end loop;
    if own.claims then
      delete from claims where call_id = own.id and not (keep_seconds > 0 and call_charges[1] > 0);
      update claims set kept_until = at + make_interval(secs => keep_seconds) where call_id = own.id and keep_seconds > 0;
    end if;
    insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at)
    values (own.id, own.account_id, own.credential_id, own.operation, call_outcomes[1], own.amount, call_charges[1],
      call_promos[1], coalesce(call_amounts[1], 0) - call_charges[1], call_values[1], call_upstream_costs[1],
      call_executed[1] or call_charges[1] > 0, call_failed[1],
      call_input_tokens[1], call_output_tokens[1], call_cache_read_tokens[1], call_cache_write_tokens[1],
      own.allowances, own.begun_at, at);
    if call_executed[1] or call_charges[1] > 0 then
      insert into usage_hours as row (credential_id, hour, account_id, requests, failed_requests,
        input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
      values (own.credential_id, date_trunc('hour', at, 'UTC'), own.account_id, 1, call_failed[1]::integer,
        call_input_tokens[1], call_output_tokens[1], call_cache_read_tokens[1], call_cache_write_tokens[1], call_values[1], call_charges[1])
      on conflict (credential_id, hour) do update set
        requests = row.requests + excluded.requests,
        failed_requests = row.failed_requests + excluded.failed_requests,
        input_tokens = row.input_tokens + excluded.input_tokens,
        output_tokens = row.output_tokens + excluded.output_tokens,
        cache_read_tokens = row.cache_read_tokens + excluded.cache_read_tokens,
        cache_write_tokens = row.cache_write_tokens + excluded.cache_write_tokens,
        value = row.value + excluded.value,
        charged = row.charged + excluded.charged;
    end if;
    delete from holds where id = own.id;
  else
    if has_allowances then
      update allowance_periods row set held = row.held - change.held, charged = row.charged + change.charge
      from (
        select period.place, sum(hold.amount)::bigint as held, sum(call_charges[hold.ordinality])::bigint as charge
        from unnest(ending) with ordinality hold
        cross join unnest(hold.allowances) one (id)
        cross join lateral (
          select ctid as place from allowance_periods where allowance_id = one.id and starts_at <= hold.begun_at order by starts_at desc limit 1
        ) period
        where hold.amount > 0
        group by period.place
      ) change
      where row.ctid = change.place;
    end if;

    if has_tokens then
      with changed as (
        update windows row set tokens = greatest(0, row.tokens + change.difference)
        from (
          select standing.place,
            sum(case when standing.started_at <= hold.begun_at then call_input_tokens[hold.ordinality] + call_output_tokens[hold.ordinality]
              + call_cache_read_tokens[hold.ordinality] + call_cache_write_tokens[hold.ordinality] - hold.tokens_estimated
              else 0 end)::bigint as difference
          from unnest(ending) with ordinality hold
          cross join unnest(hold.token_groups) one (limit_group)
          cross join lateral (
            select ctid as place, started_at from windows
            where windows.credential_id = hold.credential_id and windows.limit_group = one.limit_group limit 1
          ) standing
          group by standing.place
        ) change
        where row.ctid = change.place
        returning row.*
      )
      select array_agg(credential_id || ' ' || limit_group), array_agg(array[date_part('epoch', started_at), requests, tokens])
      into window_keys, window_states from changed;
    end if;

    if has_claims then
      select array_agg(row.place) filter (where row.kept), array_agg(row.place) filter (where not row.kept)
      into claims_kept, claims_ended
      from unnest(ending) with ordinality hold
      cross join lateral (
        select ctid as place, keep_seconds > 0 and call_charges[hold.ordinality] > 0 as kept from claims where call_id = hold.id limit 100
      ) row
      where hold.claims;
      delete from claims where ctid = any (claims_ended);
      if claims_kept is not null then
        update claims set kept_until = at + make_interval(secs => keep_seconds) where ctid = any (claims_kept);
      end if;
    end if;

    insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at)
    select call_ids[i], call_accounts[i], hold.credential_id, hold.operation, call_outcomes[i], coalesce(hold.amount, 0), call_charges[i],
      call_promos[i], coalesce(call_amounts[i], 0) - call_charges[i], call_values[i], call_upstream_costs[i],
      call_executed[i] or call_charges[i] > 0, call_failed[i],
      call_input_tokens[i], call_output_tokens[i], call_cache_read_tokens[i], call_cache_write_tokens[i],
      coalesce(hold.allowances, '{}'), hold.begun_at, at
    from unnest(ending) with ordinality hold cross join lateral (select hold.ordinality) item (i)
    where call_outcomes[i] is not null;

    insert into usage_hours as row (credential_id, hour, account_id, requests, failed_requests,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select hold.credential_id, date_trunc('hour', at, 'UTC'), hold.account_id, count(*), count(*) filter (where call_failed[i]),
      sum(call_input_tokens[i]), sum(call_output_tokens[i]), sum(call_cache_read_tokens[i]), sum(call_cache_write_tokens[i]),
      sum(call_values[i]), sum(call_charges[i])
    from unnest(ending) with ordinality hold cross join lateral (select hold.ordinality) item (i)
    where hold.id is not null and (call_executed[i] or call_charges[i] > 0)
    group by hold.credential_id, hold.account_id
    on conflict (credential_id, hour) do update set
      requests = row.requests + excluded.requests,
      failed_requests = row.failed_requests + excluded.failed_requests,
      input_tokens = row.input_tokens + excluded.input_tokens,
      output_tokens = row.output_tokens + excluded.output_tokens,
      cache_read_tokens = row.cache_read_tokens + excluded.cache_read_tokens,
      cache_write_tokens = row.cache_write_tokens + excluded.cache_write_tokens,
      value = row.value + excluded.value,
      charged = row.charged + excluded.charged;

    delete from holds where id = any (array(select hold.id from unnest(ending) hold));
  end if;

  -- What was not changed has to be read: windows of endpoints with a limit of their own, and, seldom, those of calls that had ended before.
  if asks and (has_ended_before or false = any (ask_counts_tokens)) then
    select array_agg(row.credential_id || ' ' || row.limit_group),
      array_agg(array[date_part('epoch', row.started_at), row.requests, row.tokens])
    into window_keys, window_states
    from unnest(ask_credentials, ask_groups) item (credential_id, limit_group)
    cross join lateral (
      select * from windows where windows.credential_id = item.credential_id and windows.limit_group = item.limit_group limit 1
    ) row;
  end if;

  for i in 1 .. calls loop
    account := array_position(locked, call_accounts[i]);
    ended_now := call_outcomes[i] is not null;
    outcome := coalesce(call_outcomes[i], before_outcomes[i], 'misplaced');
    charged := coalesce(before_charges[i], call_charges[i]);
    overrun := coalesce(before_overruns[i], coalesce(call_amounts[i], 0) - call_charges[i]);
    free := account_free[account];
    return next;
    if i = 1 then window_keys := null; window_states := null; end if;
  end loop;
end
$$;

-- Ends calls of which nobody asks what is left of their limits, for processes of the last release and for what ends calls of
-- others: see end_calls_with_rates.
create or replace function end_calls(
  accounts_in uuid[],
  call_days date[],
  call_ids uuid[],
  call_accounts uuid[],
  call_amounts bigint[],
  call_forgiven boolean[],
  call_values bigint[],
  call_upstream_costs bigint[],
  call_executed boolean[],
  call_failed boolean[],
  call_input_tokens bigint[],
  call_output_tokens bigint[],
  call_cache_read_tokens bigint[],
  call_cache_write_tokens bigint[]
) returns table (
  outcome text,
  charged bigint,
  overrun bigint,
  free bigint,
  ended_now boolean,
  settled_at timestamptz
)
language plpgsql volatile as $$
begin
  return query select ended.outcome, ended.charged, ended.overrun, ended.free, ended.ended_now, ended.settled_at
  from end_calls_with_rates(
    accounts_in => accounts_in,
    call_days => call_days,
    call_ids => call_ids,
    call_accounts => call_accounts,
    call_amounts => call_amounts,
    call_forgiven => call_forgiven,
    call_values => call_values,
    call_upstream_costs => call_upstream_costs,
    call_executed => call_executed,
    call_failed => call_failed,
    call_input_tokens => call_input_tokens,
    call_output_tokens => call_output_tokens,
    call_cache_read_tokens => call_cache_read_tokens,
    call_cache_write_tokens => call_cache_write_tokens,
    ask_credentials => '{}', ask_groups => '{}', ask_counts_tokens => '{}'
  ) ended;
end
$$;

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

-- Routes may speak OpenAI's Responses.
alter table model_routes
  drop constraint model_routes_protocol_check,
  add constraint model_routes_protocol_check
    check (protocol in ('openai', 'openai_responses', 'anthropic', 'gemini', 'openai_embeddings', 'openai_images', 'video'));

-- What a key has of its own within its tier: rates, each null where the tier's alone holds, and from where it may be used.
alter table api_keys
  add column requests_per_minute integer check (requests_per_minute > 0),
  add column tokens_per_minute bigint check (tokens_per_minute > 0),
  add column concurrency integer check (concurrency > 0),
  -- Null for anywhere.
  add column allowed_networks cidr[] check (cardinality(allowed_networks) between 1 and 50);

-- People: who signs in, and of which workspaces they are members. Whatever somebody could sign in with is kept as a hash or sealed.
create table people (
  id uuid primary key,
  email text not null unique check (length(email) between 3 and 320 and email = lower(email)),
  name text not null check (length(name) between 1 and 100),
  -- Argon2id in PHC form. Null before the address is verified, and for who signs in elsewhere alone.
  password text check (length(password) <= 200),
  -- Null: somebody said that it is theirs. Such a person can do nothing, and is forgotten after a day.
  verified_at timestamptz,
  -- The key of the second factor, sealed, and since when it counts: null while it is being turned on.
  totp bytea check (length(totp) <= 200),
  totp_since timestamptz,
  -- The last step of time whose code was taken: no code works twice.
  totp_used_step bigint not null default 0,
  created_at timestamptz not null default clock_timestamp(),
  constraint second_factor_has_a_key check (totp_since is null or totp is not null),
  constraint unverified_people_have_no_password check (verified_at is not null or password is null)
);

create index people_unverified on people (created_at) where verified_at is null;

-- By whom else a person is known.
create table person_identities (
  issuer text not null check (length(issuer) between 1 and 500),
  subject text not null check (length(subject) between 1 and 255),
  person_id uuid not null references people,
  created_at timestamptz not null default clock_timestamp(),
  primary key (issuer, subject)
);

create index person_identities_of_person on person_identities (person_id);

-- Who was given credit for signing up: once a mailbox, however its address is written. Kept for good.
create table sign_up_credits (
  -- SHA-256 of the folded mailbox.
  mailbox bytea primary key check (length(mailbox) = 32),
  person_id uuid not null references people,
  at timestamptz not null default clock_timestamp()
);

-- Whoever deletes a person has every reference looked up.
create index sign_up_credits_of_person on sign_up_credits (person_id);

create table browser_sessions (
  id uuid primary key,
  -- SHA-256 of what the browser has.
  hash bytea not null unique check (length(hash) = 32),
  person_id uuid not null references people,
  created_at timestamptz not null default clock_timestamp(),
  seen_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  address text not null check (length(address) <= 64),
  agent text not null check (length(agent) <= 200),
  -- False while the second factor is waited for.
  is_complete boolean not null,
  second_factor_at timestamptz,
  ended_at timestamptz
);

create index browser_sessions_of_person on browser_sessions (person_id);
create index browser_sessions_by_expiry on browser_sessions (expires_at);

-- Browsers that are not asked for the second factor again for a while.
create table remembered_browsers (
  hash bytea primary key check (length(hash) = 32),
  person_id uuid not null references people,
  expires_at timestamptz not null
);

create index remembered_browsers_of_person on remembered_browsers (person_id);
create index remembered_browsers_by_expiry on remembered_browsers (expires_at);

-- Of each only an HMAC with the key of the second factor, which is sealed: they are too short for a hash alone.
create table recovery_codes (
  person_id uuid not null references people,
  hash bytea not null check (length(hash) = 32),
  used_at timestamptz,
  primary key (person_id, hash)
);

-- Links in mails, which work once.
create table mailed_links (
  hash bytea primary key check (length(hash) = 32),
  kind text not null check (kind in ('verify', 'reset')),
  -- A person; null where the address is unknown, or needs no such link. The row is written all the same, so that nobody can tell: for
  -- that reason it is no reference either, which would be looked up where there is one.
  person_id uuid,
  -- What was typed at the sign-up that this link confirms. It counts with this link alone: somebody else who signs up with the same
  -- address must not choose the password of who owns it.
  name text check (length(name) between 1 and 100),
  password text check (length(password) <= 200),
  -- In which browser, as SHA-256 of what it has of us. Whoever confirms in another one chooses a password then.
  browser bytea check (length(browser) = 32),
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  used_at timestamptz
);

create index mailed_links_of_person on mailed_links (person_id, kind);
create index mailed_links_by_expiry on mailed_links (expires_at);

create table invitations (
  id uuid primary key,
  hash bytea not null unique check (length(hash) = 32),
  workspace_id uuid not null references workspaces,
  email text not null check (length(email) between 3 and 320 and email = lower(email)),
  role text not null check (role in ('owner', 'admin', 'developer', 'billing', 'viewer')),
  -- Null: an operator.
  invited_by uuid references people,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  decided_at timestamptz,
  decision text check (decision in ('join', 'decline', 'revoke')),
  constraint invitation_is_decided check ((decided_at is null) = (decision is null))
);

create unique index invitations_open on invitations (workspace_id, email) where decided_at is null;
create index invitations_by_expiry on invitations (expires_at);
create index invitations_of_inviter on invitations (invited_by);
create index invitations_of_address on invitations (email) where decided_at is null;

-- A member whom an operator named has no person until somebody has verified the address.
alter table members
  add column person_id uuid references people,
  drop constraint members_role_check,
  add constraint members_person unique (workspace_id, person_id);

update members set role = 'developer' where role = 'member';

alter table members add constraint members_role_check check (role in ('owner', 'admin', 'developer', 'billing', 'viewer'));

create index members_of_person on members (person_id);
create index members_unclaimed on members (email) where person_id is null;

-- How often something that can be guessed was tried, within windows that begin with their first attempt. What is lost with it when
-- PostgreSQL dies is a window.
create unlogged table door_attempts (
  kind text not null check (length(kind) <= 40),
  -- SHA-256 of whom it is counted for.
  key bytea not null check (length(key) = 32),
  ends_at timestamptz not null,
  count integer not null check (count >= 0),
  primary key (kind, key)
);

create index door_attempts_by_end on door_attempts (ends_at);

-- Counts an attempt in several windows at once: in all of them, or in none where one is full. Seconds until it may be tried again,
-- 0 where it was counted. Rows are locked in the order of their keys, and judged after that, so that no two share a place.
create or replace function take_attempts(kinds text[], keys bytea[], most integer[], seconds double precision[]) returns double precision
language plpgsql volatile as $$
declare
  at timestamptz;
  wait double precision;
begin
  insert into door_attempts as row (kind, key, ends_at, count)
  select item.kind, item.key, '-infinity', 0 from unnest(kinds, keys) item (kind, key) order by item.kind, item.key
  on conflict (kind, key) do update set count = row.count;
  at := clock_timestamp();
  select max(extract(epoch from row.ends_at - at)) into wait
  from unnest(kinds, keys, most) item (kind, key, most)
  join door_attempts row on row.kind = item.kind and row.key = item.key
  where row.ends_at > at and row.count >= item.most;
  if wait is not null then
    -- Whoever is refused must not be able to fill the table.
    delete from door_attempts row using unnest(kinds, keys) item (kind, key)
    where row.kind = item.kind and row.key = item.key and row.ends_at = '-infinity';
    return wait;
  end if;
  update door_attempts row set
    count = case when row.ends_at > at then row.count + 1 else 1 end,
    ends_at = case when row.ends_at > at then row.ends_at else at + make_interval(secs => item.seconds) end
  from unnest(kinds, keys, seconds) item (kind, key, seconds)
  where row.kind = item.kind and row.key = item.key;
  return 0;
end
$$;

-- Routes may speak Gemini's embedContent.
alter table model_routes
  drop constraint model_routes_protocol_check,
  add constraint model_routes_protocol_check check (
    protocol in (
      'openai', 'openai_responses', 'anthropic', 'gemini', 'openai_embeddings', 'gemini_embeddings', 'openai_images', 'video'
    )
  );
-- Prices as vendors have them: parts of the plain classes of tokens, steps of long input, service tiers and calls of tools, as one
-- object: {"rates": {…}, "above": […], "tiers": {…}, "tools": {…}, "tool_calls": 5, "tool_input": 20000}. Who reads it reads all of it
-- or sells nothing. Null: the plain classes alone.
alter table model_prices
  add column classes jsonb constraint classes_are_an_object check (jsonb_typeof(classes) = 'object'),
  add column provider_classes jsonb constraint provider_classes_are_an_object check (jsonb_typeof(provider_classes) = 'object'),
  add constraint classes_are_of_tokens check (classes is null or (images is null and videos is null));
