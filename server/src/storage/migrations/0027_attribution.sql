-- Whose spend it is. A hold says what is known as the call begins, so that whoever ends the call books it; a charge has all of it, and so has
-- an entry that gives some of it back. Columns are added without a rewrite: what was there has none of it.

-- Who begins or ends calls locks their accounts first, and so has none of the tables while waiting for another that we have. Who gives a charge
-- back reads the charge before that: the two may wait for each other, one of them fails, and both can be tried again.
lock table accounts in access exclusive mode;

alter table holds
  -- The model that was asked for. Statements of the release before name the model of a task beside this table without saying whose it is.
  add column asked_model text,
  add column end_user uuid,
  -- Short, for people.
  add column end_user_label text,
  -- name=value, at most 8, in the order of their names.
  add column tags text[];

alter table charges
  add column model text,
  add column route text,
  add column end_user uuid,
  add column end_user_label text,
  add column tags text[],
  -- Whether the statement that ended the call added it to usage_hours itself, as all did before. It is in no sum of usage_sums then.
  add column booked boolean not null default true;

alter table entries
  -- Null where the charge was booked.
  add column operation text,
  add column model text,
  add column route text,
  add column end_user uuid,
  add column end_user_label text,
  add column tags text[];

-- Usage that is in no sum yet: written with a charge, or with what gives one back, and taken out by who adds it up. It is no more than what
-- came in a second or two, so that it is read as a whole; dead rows have to go soon for that.
create table usage_tail (
  account_id uuid not null,
  credential_id uuid not null,
  at timestamptz not null,
  -- Null of what is given back of a charge that was booked.
  operation text,
  model text,
  route text,
  end_user uuid,
  end_user_label text,
  tags text[],
  requests integer not null,
  failed_requests integer not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_write_tokens bigint not null,
  value bigint not null,
  charged bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_threshold = -1);

-- Usage by hour of settlement and by whose it is: of all calls, of those for an end user, and of those with a tag. A call with two tags is in
-- the sums of both, so only those of one `about` are added up. Texts are compared byte by byte: nobody
-- reads them in order.
create table usage_sums (
  credential_id uuid not null,
  -- Empty for all calls, end_user, or tag:<name>.
  about text collate "C" not null,
  hour timestamptz not null,
  -- The end user's id or the tag's value; empty for all calls.
  subject text collate "C" not null,
  operation text collate "C" not null,
  -- Empty where there is none.
  model text collate "C" not null,
  route text collate "C" not null,
  account_id uuid not null,
  -- Of an end user, for people.
  label text,
  requests bigint not null,
  failed_requests bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_write_tokens bigint not null,
  value bigint not null,
  charged bigint not null,
  primary key (credential_id, about, hour, subject, operation, model, route)
) with (fillfactor = 80);

create index usage_sums_of_account on usage_sums (account_id, about, hour);
-- For those who drop what is old: hours come one after the other.
create index usage_sums_by_hour on usage_sums using brin (hour);

-- For lists of an account's calls. Days before today stay without it, because to make it, or to look whether they have charges, would lock
-- out who settles for longer: lists go back 30 days, and find calls of those days by key. Today has it where it has no charges yet, as in
-- a new installation; every day from tomorrow on has it.
create index charges_of_account on only charges (account_id, ended_at);

do $$
declare
  today constant text := 'charges_' || to_char(now() at time zone 'UTC', 'YYYYMMDD');
  day text;
  has_charges boolean := false;
begin
  for day in
    select relname from pg_inherits join pg_class on pg_class.oid = inhrelid
    where inhparent = 'charges'::regclass and relname >= today order by relname
  loop
    if day = today then execute format('select exists (select from %I)', day) into has_charges; end if;
    if day > today or not has_charges then
      execute format('create index %I on %I (account_id, ended_at)', day || '_of_account', day);
      execute format('alter index charges_of_account attach partition %I', day || '_of_account');
    end if;
  end loop;
end
$$;

-- BEGIN: admits, claims and holds, or refuses, for a batch of calls. All or none for each call: a refusal for one reason
-- consumes nothing of the others, but for the request that it may cost.
--
-- The batch names each thing that it touches once (accounts, credentials, windows, allowances, claim sets); calls refer
-- to them by position. What a call asks of windows, allowances and claims stands flattened: *_to[i] is where the
-- items of call i end.
--
-- Whose spend a call is, as far as it is known now, stands on its hold, so that whoever ends the call books it. Where no call of a batch
-- says any of it, those four arrays are empty.
create or replace function begin_attributed_calls(
  owner_id_in uuid,
  accounts_in uuid[],
  credentials_in uuid[],
  window_credentials uuid[],
  window_groups text[],
  window_seconds integer[],
  allowances_in uuid[],
  set_credentials uuid[],
  set_scopes text[],
  set_keys text[],
  -- The days that the ids carry, each once.
  call_days date[],
  call_ids uuid[],
  call_accounts integer[],
  call_credentials integer[],
  call_holds boolean[],
  call_amounts bigint[],
  call_tokens bigint[],
  call_operations text[],
  call_terms text[],
  call_allowances text[],
  call_token_groups text[],
  call_models text[],
  call_end_users uuid[],
  call_end_user_labels text[],
  -- Each an array as text: name=value, in the order of their names.
  call_tags text[],
  ask_windows_to integer[],
  ask_windows integer[],
  ask_request_limits integer[],
  ask_token_limits bigint[],
  ask_allowances_to integer[],
  ask_allowances integer[],
  ask_sets_to integer[],
  ask_sets integer[],
  ask_set_limits integer[],
  ask_fingerprints text[],
  ask_keep_seconds integer[],
  ask_ends_with_owner boolean[]
) returns table (
  outcome text,
  -- Which of the call's windows, allowances or claims refused it, counted from 0 in the order of the call.
  subject integer,
  -- Money of the account that is free, after the call where it was begun.
  free bigint,
  -- What is left of the allowance that refused.
  allowance_left bigint,
  -- The call that has the claim, where the set has room for one.
  holder uuid,
  request_limit integer,
  requests_left integer,
  requests_reset_at timestamptz,
  token_limit bigint,
  tokens_left bigint,
  tokens_reset_at timestamptz,
  judged_at timestamptz
)
language plpgsql volatile
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  at timestamptz;
  calls constant integer := cardinality(call_ids);
  -- The accounts that there are, in the order of their ids, in which they are locked.
  locked uuid[];
  account_rows tid[];
  account_state text[];
  account_free bigint[];
  free_before bigint[];
  credential_of uuid[];
  call_known text[];
  window_started timestamptz[];
  window_requests integer[];
  window_tokens bigint[];
  requests_before integer[];
  allowance_account uuid[];
  allowance_starts timestamptz[];
  allowance_amounts bigint[];
  allowance_free bigint[];
  allowance_before bigint[];
  set_members integer[];
  taken_for text;
  -- The calls that begin to hold, and the claims that they get: which call, and which of all that were asked for.
  held_calls integer[];
  claim_calls integer[];
  claim_asks integer[];
  takes_request boolean;
  a integer; w integer; s integer; account integer;
  window_from integer := 1; allowance_from integer := 1; set_from integer := 1;
begin
  -- Who waits for a lock is given the row as it is then. Of anything else a statement that locks sees what was there before
  -- it waited: so this one reads what it locks, and nothing else.
  if cardinality(accounts_in) = 1 then
    select array[id], array[ctid], array[credited + debt - charged - held],
      array[case when not active then 'inactive' when debt > 0 then 'suspended' else 'active' end]
    into locked, account_rows, account_free, account_state
    from accounts where id = accounts_in[1] for no key update;
  else
    select array_agg(id), array_agg(ctid), array_agg(credited + debt - charged - held),
      array_agg(case when not active then 'inactive' when debt > 0 then 'suspended' else 'active' end)
    into locked, account_rows, account_free, account_state
    from (select ctid, * from accounts where id = any (accounts_in) order by id for no key update) row;
  end if;
  at := clock_timestamp();
  judged_at := at;
  free_before := account_free;

  -- Whose money each may spend: nobody's where it is not active.
  if cardinality(credentials_in) = 1 then
    credential_of := array(select account_id from credentials where id = credentials_in[1] and active);
  else
    credential_of := array(
      select row.account_id from unnest(credentials_in) item (id)
      left join lateral (select account_id from credentials where id = item.id and active limit 1) row on true
    );
  end if;

  -- The same id again answers as the first time; an id that has ended, or was voided before it came, holds nothing.
  if true = any (call_holds) and (exists (select from holds where id = any (call_ids)) or has_ended(call_ids, call_days)) then
    call_known := array(
      select case
        when hold.account_id = accounts_in[call_accounts[place]] then 'begun'
        when hold.account_id is not null or item.id = any (ended.ids) then 'ended' end
      from (select array(select id from ended_among(call_ids, call_days)) as ids) ended
      cross join unnest(call_ids) with ordinality item (id, place)
      left join lateral (select account_id from holds where id = item.id limit 1) hold on true
    );
  end if;

  if cardinality(window_groups) = 1 then
    select array[started_at], array[requests], array[tokens] into window_started, window_requests, window_tokens from windows
    where credential_id = window_credentials[1] and limit_group = window_groups[1]
      and started_at + make_interval(secs => window_seconds[1]) > at;
    if not found then window_requests := array[0]; window_tokens := array[0]; end if;
  elsif cardinality(window_groups) > 1 then
    select array_agg(row.started_at), array_agg(coalesce(row.requests, 0)), array_agg(coalesce(row.tokens, 0))
    into window_started, window_requests, window_tokens
    from unnest(window_groups) with ordinality item (limit_group, place)
    left join lateral (
      select started_at, requests, tokens from windows
      where credential_id = window_credentials[place] and limit_group = item.limit_group
        and started_at + make_interval(secs => window_seconds[place]) > at
      limit 1
    ) row on true;
  end if;
  requests_before := window_requests;

  if cardinality(allowances_in) = 1 then
    select array[allowance.account_id], array[allowance.starts_at], array[coalesce(row.amount, allowance.amount)],
      -- One that was lowered below what was spoken for stays lowered when some of that comes free.
      array[greatest(0, coalesce(least(row.amount, allowance.amount) - row.charged - row.held, allowance.amount))]
    into allowance_account, allowance_starts, allowance_amounts, allowance_free
    from (select account_id, amount, period_start(period, at) as starts_at from allowances where id = allowances_in[1]) allowance
    left join lateral (
      select amount, charged, held from allowance_periods where allowance_id = allowances_in[1] and starts_at = allowance.starts_at limit 1
    ) row on true;
  elsif cardinality(allowances_in) > 1 then
    select array_agg(allowance.account_id), array_agg(allowance.starts_at), array_agg(coalesce(row.amount, allowance.amount)),
      array_agg(greatest(0, coalesce(least(row.amount, allowance.amount) - row.charged - row.held, allowance.amount)))
    into allowance_account, allowance_starts, allowance_amounts, allowance_free
    from unnest(allowances_in) item (id)
    left join lateral (
      select account_id, amount, period_start(period, at) as starts_at from allowances where id = item.id limit 1
    ) allowance on true
    left join lateral (
      select amount, charged, held from allowance_periods where allowance_id = item.id and starts_at = allowance.starts_at limit 1
    ) row on true;
  end if;
  allowance_before := allowance_free;

  if cardinality(set_keys) = 1 then
    set_members := array(
      select count(*)::integer from claims
      where credential_id = set_credentials[1] and scope = set_scopes[1] and key = set_keys[1]
        and (kept_until is null or kept_until > at)
    );
  elsif cardinality(set_keys) > 1 then
    set_members := array(
      select row.members from unnest(set_keys) with ordinality item (key, place)
      cross join lateral (
        select count(*)::integer as members from claims
        where credential_id = set_credentials[place] and scope = set_scopes[place] and key = item.key
          and (kept_until is null or kept_until > at)
      ) row
    );
  end if;

  -- Judged in the order of arrival, each against what the ones before it have left.
  for i in 1 .. calls loop
    account := array_position(locked, accounts_in[call_accounts[i]]);
    takes_request := false;

    <<judged>>
    begin
      if call_holds[i] and call_known[i] is not null then
        outcome := call_known[i]; exit judged;
      elsif account is null then
        outcome := 'account_unknown'; exit judged;
      elsif account_state[account] = 'inactive' then
        outcome := 'account_inactive'; exit judged;
      elsif credential_of[call_credentials[i]] is distinct from locked[account] then
        outcome := 'credential_inactive'; exit judged;
      end if;

      for j in window_from .. ask_windows_to[i] loop
        w := ask_windows[j];
        if window_requests[w] >= ask_request_limits[j] then
          outcome := 'requests_spent'; subject := j - window_from; exit judged;
        -- A call without tokens is not refused for them: it asks only how many are left.
        elsif call_tokens[i] > 0 and window_tokens[w] + call_tokens[i] > ask_token_limits[j] then
          outcome := 'tokens_spent'; subject := j - window_from; exit judged;
        end if;
      end loop;
      takes_request := true;

      -- Whoever owes may still look at what it owes.
      if call_holds[i] and account_state[account] = 'suspended' then
        outcome := 'account_suspended'; exit judged;
      end if;

      for j in set_from .. ask_sets_to[i] loop
        s := ask_sets[j];
        if set_members[s] >= ask_set_limits[j] then
          outcome := 'claim_taken'; subject := j - set_from;
          -- What ends with its call is a slot: it will be free soon, without the caller's doing.
          takes_request := ask_keep_seconds[j] > 0;
          if ask_set_limits[j] = 1 then
            select claim.call_id, claim.fingerprint into holder, taken_for from (
              select call_id, fingerprint from claims
              where credential_id = set_credentials[s] and scope = set_scopes[s] and key = set_keys[s] and (kept_until is null or kept_until > at)
              union all
              select call_ids[call], ask_fingerprints[ask] from unnest(claim_calls, claim_asks) item (call, ask) where ask_sets[ask] = s
            ) claim limit 1;
            if taken_for <> ask_fingerprints[j] then outcome := 'claim_differs'; end if;
          end if;
          exit judged;
        end if;
      end loop;

      if call_holds[i] then
        for j in allowance_from .. ask_allowances_to[i] loop
          a := ask_allowances[j];
          if allowance_account[a] is distinct from locked[account] or call_amounts[i] > allowance_free[a] then
            allowance_left := case when allowance_account[a] = locked[account] then allowance_free[a] else 0 end;
            outcome := 'allowance_spent'; subject := j - allowance_from; exit judged;
          end if;
        end loop;
        if call_amounts[i] > account_free[account] then
          outcome := 'money_spent'; exit judged;
        end if;
      end if;

      outcome := 'begun';
      if call_holds[i] then
        held_calls := held_calls || i;
        for j in set_from .. ask_sets_to[i] loop
          s := ask_sets[j];
          set_members[s] := set_members[s] + 1;
          claim_calls := claim_calls || i;
          claim_asks := claim_asks || j;
        end loop;
        for j in allowance_from .. ask_allowances_to[i] loop
          a := ask_allowances[j];
          allowance_free[a] := allowance_free[a] - call_amounts[i];
        end loop;
        account_free[account] := account_free[account] - call_amounts[i];
      end if;
    end judged;

    -- What the call takes of its windows; the tightest of them speaks in the answer's headers.
    for j in window_from .. ask_windows_to[i] loop
      w := ask_windows[j];
      if takes_request then
        if window_started[w] is null then window_started[w] := at; end if;
        window_requests[w] := window_requests[w] + 1;
        if outcome = 'begun' and ask_token_limits[j] is not null then window_tokens[w] := window_tokens[w] + call_tokens[i]; end if;
      end if;
      if requests_left is null or ask_request_limits[j] - window_requests[w] < requests_left then
        request_limit := ask_request_limits[j];
        requests_left := greatest(0, request_limit - window_requests[w]);
        requests_reset_at := coalesce(window_started[w], at) + make_interval(secs => window_seconds[w]);
      end if;
      if ask_token_limits[j] - window_tokens[w] < coalesce(tokens_left, ask_token_limits[j] + 1) then
        token_limit := ask_token_limits[j];
        tokens_left := greatest(0, token_limit - window_tokens[w]);
        tokens_reset_at := coalesce(window_started[w], at) + make_interval(secs => window_seconds[w]);
      end if;
    end loop;

    free := account_free[account];
    return next;
    exit when i = calls;

    requests_left := null; tokens_left := null; request_limit := null; token_limit := null;
    if outcome <> 'begun' then subject := null; holder := null; end if;
    window_from := ask_windows_to[i] + 1;
    set_from := ask_sets_to[i] + 1;
    allowance_from := ask_allowances_to[i] + 1;
  end loop;

  if window_requests <> requests_before then
    insert into windows as row (credential_id, limit_group, started_at, requests, tokens)
    select window_credentials[place], limit_group, window_started[place], window_requests[place], window_tokens[place]
    from unnest(window_groups) with ordinality item (limit_group, place)
    where window_requests[place] <> requests_before[place]
    on conflict (credential_id, limit_group) do update
    set started_at = excluded.started_at, requests = excluded.requests, tokens = excluded.tokens;
  end if;

  if held_calls is null then return; end if;

  if cardinality(locked) = 1 then
    update accounts set held = held + free_before[1] - account_free[1] where ctid = account_rows[1];
  else
    update accounts row set held = row.held + free_before[item.place] - account_free[item.place]
    from unnest(account_rows) with ordinality item (ctid, place)
    where row.ctid = item.ctid and free_before[item.place] <> account_free[item.place];
  end if;

  insert into holds (id, account_id, credential_id, owner_id, operation, amount, terms, allowances, token_groups, tokens_estimated, claims, begun_at,
    asked_model, end_user, end_user_label, tags)
  select call_ids[i], accounts_in[call_accounts[i]], credentials_in[call_credentials[i]], owner_id_in, call_operations[i], call_amounts[i],
    call_terms[i], call_allowances[i]::uuid[], call_token_groups[i]::text[], call_tokens[i], ask_sets_to[i] > coalesce(ask_sets_to[i - 1], 0), at,
    call_models[i], call_end_users[i], call_end_user_labels[i], call_tags[i]::text[]
  from unnest(held_calls) i;

  if allowance_free <> allowance_before then
    insert into allowance_periods as row (allowance_id, starts_at, amount, held)
    select id, allowance_starts[place], allowance_amounts[place], allowance_before[place] - allowance_free[place]
    from unnest(allowances_in) with ordinality item (id, place)
    where allowance_before[place] <> allowance_free[place]
    on conflict (allowance_id, starts_at) do update set held = row.held + excluded.held;
  end if;

  if claim_calls is not null then
    insert into claims (credential_id, scope, key, call_id, fingerprint, keep_seconds, ends_with_owner)
    select set_credentials[ask_sets[j]], set_scopes[ask_sets[j]], set_keys[ask_sets[j]], call_ids[i], ask_fingerprints[j], ask_keep_seconds[j],
      ask_ends_with_owner[j]
    from unnest(claim_calls, claim_asks) item (i, j);
  end if;
end
$$;

-- Begins calls of which nobody says whose spend they are, for processes of the last release: see begin_attributed_calls.
create or replace function begin_calls(
  owner_id_in uuid,
  accounts_in uuid[],
  credentials_in uuid[],
  window_credentials uuid[],
  window_groups text[],
  window_seconds integer[],
  allowances_in uuid[],
  set_credentials uuid[],
  set_scopes text[],
  set_keys text[],
  -- The days that the ids carry, each once.
  call_days date[],
  call_ids uuid[],
  call_accounts integer[],
  call_credentials integer[],
  call_holds boolean[],
  call_amounts bigint[],
  call_tokens bigint[],
  call_operations text[],
  call_terms text[],
  call_allowances text[],
  call_token_groups text[],
  ask_windows_to integer[],
  ask_windows integer[],
  ask_request_limits integer[],
  ask_token_limits bigint[],
  ask_allowances_to integer[],
  ask_allowances integer[],
  ask_sets_to integer[],
  ask_sets integer[],
  ask_set_limits integer[],
  ask_fingerprints text[],
  ask_keep_seconds integer[],
  ask_ends_with_owner boolean[]
) returns table (
  outcome text,
  -- Which of the call's windows, allowances or claims refused it, counted from 0 in the order of the call.
  subject integer,
  -- Money of the account that is free, after the call where it was begun.
  free bigint,
  -- What is left of the allowance that refused.
  allowance_left bigint,
  -- The call that has the claim, where the set has room for one.
  holder uuid,
  request_limit integer,
  requests_left integer,
  requests_reset_at timestamptz,
  token_limit bigint,
  tokens_left bigint,
  tokens_reset_at timestamptz,
  judged_at timestamptz
)
language plpgsql volatile as $$
begin
  return query select begun.outcome, begun.subject, begun.free, begun.allowance_left, begun.holder, begun.request_limit,
    begun.requests_left, begun.requests_reset_at, begun.token_limit, begun.tokens_left, begun.tokens_reset_at, begun.judged_at
  from begin_attributed_calls(
    owner_id_in => owner_id_in,
    accounts_in => accounts_in,
    credentials_in => credentials_in,
    window_credentials => window_credentials,
    window_groups => window_groups,
    window_seconds => window_seconds,
    allowances_in => allowances_in,
    set_credentials => set_credentials,
    set_scopes => set_scopes,
    set_keys => set_keys,
    call_days => call_days,
    call_ids => call_ids,
    call_accounts => call_accounts,
    call_credentials => call_credentials,
    call_holds => call_holds,
    call_amounts => call_amounts,
    call_tokens => call_tokens,
    call_operations => call_operations,
    call_terms => call_terms,
    call_allowances => call_allowances,
    call_token_groups => call_token_groups,
    call_models => '{}',
    call_end_users => '{}',
    call_end_user_labels => '{}',
    call_tags => '{}',
    ask_windows_to => ask_windows_to,
    ask_windows => ask_windows,
    ask_request_limits => ask_request_limits,
    ask_token_limits => ask_token_limits,
    ask_allowances_to => ask_allowances_to,
    ask_allowances => ask_allowances,
    ask_sets_to => ask_sets_to,
    ask_sets => ask_sets,
    ask_set_limits => ask_set_limits,
    ask_fingerprints => ask_fingerprints,
    ask_keep_seconds => ask_keep_seconds,
    ask_ends_with_owner => ask_ends_with_owner
  ) begun;
end
$$;

-- END: posts or voids a batch of calls, once each: releases the hold, books the charge and the usage, pays debt with
-- what became free, takes what expired while it was held, corrects token windows, ends or keeps claims. An id that has
-- ended answers as the first time; an id that never began leaves a tombstone; an id of another account, or of none, is
-- left alone and answered as misplaced. What is to be posted after a void is the operator's loss.
--
-- What calls reserved of token windows and did not use is given back, and what they used beyond it is added: to the window that
-- they reserved in last, as they began or were extended, if no other has begun since. What they reserved in windows before that one
-- counts as used there. The windows as they are then are told with the first row.
--
-- Usage is noted in usage_tail, a row for the batch's calls that are alike in whose they are, which add_up_usage adds to the sums of their hour. For processes of the
-- last release it is added to usage_hours at once: their reports read nothing else, and nobody may be there who adds up.
create or replace function end_attributed_calls(
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
  -- Whom each call went to; empty where no call of the batch says so.
  call_routes text[],
  -- Windows that somebody asks for, each once, and whether it counts tokens.
  ask_credentials uuid[],
  ask_groups text[],
  ask_counts_tokens boolean[],
  -- Whether usage goes to usage_hours at once, and whose it is into no sum.
  books_hours boolean default false
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
      update windows row set tokens = case when row.started_at <= coalesce(own.reserved_at, own.begun_at) then greatest(0, row.tokens
        + greatest(0, call_input_tokens[1] + call_output_tokens[1] + call_cache_read_tokens[1] + call_cache_write_tokens[1] - own.tokens_moved)
        - (own.tokens_estimated - own.tokens_moved))
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
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at,
      model, route, end_user, end_user_label, tags, booked)
    values (own.id, own.account_id, own.credential_id, own.operation, call_outcomes[1], own.amount, call_charges[1],
      call_promos[1], coalesce(call_amounts[1], 0) - call_charges[1], call_values[1], call_upstream_costs[1],
      call_executed[1] or call_charges[1] > 0, call_failed[1],
      call_input_tokens[1], call_output_tokens[1], call_cache_read_tokens[1], call_cache_write_tokens[1],
      own.allowances, own.begun_at, at,
      own.asked_model, call_routes[1], own.end_user, own.end_user_label, own.tags, books_hours);
    if not books_hours and (call_executed[1] or call_charges[1] > 0) then
      insert into usage_tail (account_id, credential_id, at, operation, model, route, end_user, end_user_label, tags,
        requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
      values (own.account_id, own.credential_id, at, own.operation, own.asked_model, call_routes[1], own.end_user, own.end_user_label, own.tags,
        1, call_failed[1]::integer,
        call_input_tokens[1], call_output_tokens[1], call_cache_read_tokens[1], call_cache_write_tokens[1], call_values[1], call_charges[1]);
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
            sum(case when standing.started_at <= coalesce(hold.reserved_at, hold.begun_at)
              then greatest(0, call_input_tokens[hold.ordinality] + call_output_tokens[hold.ordinality]
                + call_cache_read_tokens[hold.ordinality] + call_cache_write_tokens[hold.ordinality] - hold.tokens_moved)
                - (hold.tokens_estimated - hold.tokens_moved)
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
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at,
      model, route, end_user, end_user_label, tags, booked)
    select call_ids[i], call_accounts[i], hold.credential_id, hold.operation, call_outcomes[i], coalesce(hold.amount, 0), call_charges[i],
      call_promos[i], coalesce(call_amounts[i], 0) - call_charges[i], call_values[i], call_upstream_costs[i],
      call_executed[i] or call_charges[i] > 0, call_failed[i],
      call_input_tokens[i], call_output_tokens[i], call_cache_read_tokens[i], call_cache_write_tokens[i],
      coalesce(hold.allowances, '{}'), hold.begun_at, at,
      hold.asked_model, call_routes[i], hold.end_user, hold.end_user_label, hold.tags, books_hours
    from unnest(ending) with ordinality hold cross join lateral (select hold.ordinality) item (i)
    where call_outcomes[i] is not null;

    if not books_hours then
      insert into usage_tail (account_id, credential_id, at, operation, model, route, end_user, end_user_label, tags,
        requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
      select hold.account_id, hold.credential_id, at, hold.operation, hold.asked_model, call_routes[i], hold.end_user, hold.end_user_label, hold.tags,
        count(*), count(*) filter (where call_failed[i]),
        sum(call_input_tokens[i]), sum(call_output_tokens[i]), sum(call_cache_read_tokens[i]), sum(call_cache_write_tokens[i]),
        sum(call_values[i]), sum(call_charges[i])
      from unnest(ending) with ordinality hold cross join lateral (select hold.ordinality) item (i)
      where hold.id is not null and (call_executed[i] or call_charges[i] > 0)
      group by hold.account_id, hold.credential_id, hold.operation, hold.asked_model, call_routes[i], hold.end_user, hold.end_user_label, hold.tags;
    end if;

    delete from holds where id = any (array(select hold.id from unnest(ending) hold));
  end if;

  -- In the order in which add_up_usage changes the same rows.
  if books_hours then
    insert into usage_hours as row (credential_id, hour, account_id, requests, failed_requests,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select hold.credential_id, date_trunc('hour', at, 'UTC'), hold.account_id, count(*), count(*) filter (where call_failed[i]),
      sum(call_input_tokens[i]), sum(call_output_tokens[i]), sum(call_cache_read_tokens[i]), sum(call_cache_write_tokens[i]),
      sum(call_values[i]), sum(call_charges[i])
    from unnest(ending) with ordinality hold cross join lateral (select hold.ordinality) item (i)
    where hold.id is not null and (call_executed[i] or call_charges[i] > 0)
    group by hold.credential_id, hold.account_id
    order by hold.credential_id
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

-- Ends calls of which nobody says whom they went to, for processes of before: see end_attributed_calls.
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
language plpgsql volatile as $$
begin
  return query select ended.outcome, ended.charged, ended.overrun, ended.free, ended.ended_now, ended.settled_at, ended.window_keys,
    ended.window_states
  from end_attributed_calls(
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
    call_routes => '{}',
    ask_credentials => ask_credentials,
    ask_groups => ask_groups,
    ask_counts_tokens => ask_counts_tokens,
    books_hours => true
  ) ended;
end
$$;

-- Ends calls of which nobody asks what is left of their limits, for processes of the last release: see end_attributed_calls.
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
  from end_attributed_calls(
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
    call_routes => '{}', ask_credentials => '{}', ask_groups => '{}', ask_counts_tokens => '{}',
    books_hours => true
  ) ended;
end
$$;

-- Gives a charge back, once for each id of a reversal; never more than was charged. The allowances that it was counted
-- against get theirs back, what promotional credit paid is promotional credit again until the last of the account's
-- grants expires, and the usage report is corrected in the hour of the reversal, for whom the call was made. A forgiveness is the loss of the operator, as
-- overrun is.
create or replace function reverse_charge(reversal_id uuid, charge_id uuid, most bigint, reversal_kind text default 'charge_reversal') returns bigint
language plpgsql volatile as $$
declare
  charge charges%rowtype;
  given_before bigint;
  given bigint;
  given_promo bigint;
  change record;
  at timestamptz;
begin
  if reversal_kind not in ('charge_reversal', 'forgiveness') then raise exception '% gives no charge back', reversal_kind; end if;
  select * into charge from charges where id = charge_id;
  if not found then return 0; end if;
  perform 1 from accounts where id = charge.account_id for no key update;
  at := clock_timestamp();

  perform require_entry_of(reversal_id, charge_id);
  select -charged into given from entries where id = reversal_id;
  if found then return given; end if;
  select coalesce(-sum(charged), 0) into given_before from entries where corrects = charge_id;
  given := greatest(0, least(most, charge.amount - given_before));
  -- Entered even where it gives nothing, so that the same id answers the same; but a call that was never charged may yet
  -- need an entry of its own id, for what it cost us.
  if given = 0 and reversal_kind = 'forgiveness' then return 0; end if;
  given_promo := least(given_before + given, charge.promo) - least(given_before, charge.promo);

  if given_promo > 0 then perform count_promotions(charge.account_id); end if;
  change := change_account(charge.account_id, 0, 0, -given, given_promo, 0);
  -- Of a charge that was booked without attribution, no sum but that of its hour is corrected.
  if charge.booked then charge.operation := null; end if;
  insert into entries (id, account_id, kind, charged, promo, debt, overrun, credential_id, corrects, entered_at,
    operation, model, route, end_user, end_user_label, tags)
  values (reversal_id, charge.account_id, reversal_kind, -given, change.promo_change, change.debt_change,
    case when reversal_kind = 'forgiveness' then given else 0 end, charge.credential_id, charge_id, at,
    charge.operation, charge.model, charge.route, charge.end_user, charge.end_user_label, charge.tags);
  if change.promo_change > 0 then
    update promotions set remaining = remaining + change.promo_change
    where id = (select id from promotions where account_id = charge.account_id order by expires_at desc, id desc limit 1);
  end if;
  update allowance_periods row set charged = row.charged - given
  from allowances allowance
  where allowance.id = any (charge.allowances) and row.allowance_id = allowance.id
    and row.starts_at = period_start(allowance.period, charge.begun_at);
  if given = 0 then return 0; end if;
  if charge.booked then
    insert into usage_hours as row (credential_id, hour, account_id, requests, failed_requests,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    values (charge.credential_id, date_trunc('hour', at, 'UTC'), charge.account_id, 0, 0, 0, 0, 0, 0, 0, -given)
    on conflict (credential_id, hour) do update set charged = row.charged + excluded.charged;
    return given;
  end if;
  insert into usage_tail (account_id, credential_id, at, operation, model, route, end_user, end_user_label, tags,
    requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
  values (charge.account_id, charge.credential_id, at, charge.operation, charge.model, charge.route, charge.end_user, charge.end_user_label,
    charge.tags, 0, 0, 0, 0, 0, 0, 0, -given);
  return given;
end
$$;

-- Drops the oldest day that is to be kept no longer, and answers which; null where there is none, or somebody else is at
-- it. Its sums are carried forward in the same transaction, which has to end with this statement: whoever settles waits
-- from the drop to the commit, and at most as long as the lock for the drop is waited for. Where that is too long, this
-- fails and can be tried again.
create or replace function drop_charges_before(first_kept date) returns date
language plpgsql volatile
set lock_timeout = '300ms'
as $$
declare
  day date;
  name text;
  starts timestamptz;
begin
  if not pg_try_advisory_xact_lock(hashtext('drop_charges_before')) then return null; end if;
  select to_date(right(relname, 8), 'YYYYMMDD') into day
  from pg_inherits join pg_class on pg_class.oid = inhrelid
  where inhparent = 'charges'::regclass order by relname limit 1;
  if day is null or day >= first_kept then return null; end if;
  name := 'charges_' || to_char(day, 'YYYYMMDD');
  starts := day::timestamp at time zone 'UTC';

  -- Nothing is added to the day while it is summed up. Calls of other days do not ask for this lock.
  execute format('lock table %I in share row exclusive mode', name);
  execute format('
    insert into dropped_charges as row (account_id, amount, promo)
    select account_id, sum(amount), sum(promo) from %I where amount > 0 group by account_id
    on conflict (account_id) do update set amount = row.amount + excluded.amount, promo = row.promo + excluded.promo', name);
  execute format('
    insert into dropped_allowances as row (allowance_id, starts_at, amount)
    select allowance.id, period_start(allowance.period, charge.begun_at), sum(charge.amount)
    from %I charge cross join unnest(charge.allowances) one (id) join allowances allowance on allowance.id = one.id
    where charge.amount > 0 group by 1, 2
    on conflict (allowance_id, starts_at) do update set amount = row.amount + excluded.amount', name);
  insert into dropped_days values (day) on conflict do nothing;
  delete from usage_hours where hour < starts;
  delete from usage_sums where hour < starts;

  -- Who gives a charge back reads it first. So once nobody reads the day any more, all that was given back is there to be
  -- seen, and no more will be.
  execute format('lock table %I in access exclusive mode', name);
  execute format('
    update dropped_allowances row set amount = row.amount + given.charged
    from (
      select allowance.id, period_start(allowance.period, charge.begun_at) as starts_at, sum(entry.charged) as charged
      from entries entry join %I charge on charge.id = entry.corrects
      cross join unnest(charge.allowances) one (id) join allowances allowance on allowance.id = one.id
      where entry.corrects >= $1 and entry.corrects < $2
      group by 1, 2
    ) given
    where row.allowance_id = given.id and row.starts_at = given.starts_at', name)
  using first_id_at(starts), first_id_at(starts + interval '1 day');
  execute format('drop table %I', name);
  return day;
end
$$;

-- Adds what usage_tail has, at most so many rows, to the sums of their hours, and takes it out of there: both, or neither. So a row is in
-- the tail or in the sums, never in both and never in none, whoever dies and whoever commits late: what is not visible yet stays for the
-- next time. Says how many rows it took; null where somebody else is at it.
create or replace function add_up_usage(most integer) returns integer
language plpgsql volatile
set plan_cache_mode = force_generic_plan
as $$
declare
  added integer;
begin
  -- One at a time: two would wait for each other's sums.
  if not pg_try_advisory_xact_lock(hashtext('add_up_usage')) then return null; end if;

  with taken as (
    delete from usage_tail where ctid = any (array(select ctid from usage_tail limit most)) returning *
  ), hours as (
    insert into usage_hours as row (credential_id, hour, account_id, requests, failed_requests,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select credential_id, date_trunc('hour', at, 'UTC'), account_id, sum(requests), sum(failed_requests),
      sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
    -- Whoever ends calls for processes of the last release changes some of these rows too, in the same order.
    from taken group by 1, 2, 3 order by 1, 2
    on conflict (credential_id, hour) do update set
      requests = row.requests + excluded.requests,
      failed_requests = row.failed_requests + excluded.failed_requests,
      input_tokens = row.input_tokens + excluded.input_tokens,
      output_tokens = row.output_tokens + excluded.output_tokens,
      cache_read_tokens = row.cache_read_tokens + excluded.cache_read_tokens,
      cache_write_tokens = row.cache_write_tokens + excluded.cache_write_tokens,
      value = row.value + excluded.value,
      charged = row.charged + excluded.charged
  ), sums as (
    insert into usage_sums as row (credential_id, about, hour, subject, operation, model, route, account_id, label, requests,
      failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select taken.credential_id, one.about, date_trunc('hour', at, 'UTC'), one.subject, operation, coalesce(model, ''), coalesce(route, ''),
      taken.account_id, max(one.label), sum(requests), sum(failed_requests),
      sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
    from taken cross join lateral (
      select '', '', null
      union all select 'end_user', end_user::text, end_user_label where end_user is not null
      union all select 'tag:' || split_part(tag, '=', 1), substr(tag, strpos(tag, '=') + 1), null from unnest(tags) tag
    ) one (about, subject, label)
    -- What was booked before there was attribution is in no sum but that of its hour, and so is what is given back of it.
    where operation is not null
    group by 1, 2, 3, 4, 5, 6, 7, 8
    on conflict (credential_id, about, hour, subject, operation, model, route) do update set
      label = coalesce(excluded.label, row.label),
      requests = row.requests + excluded.requests,
      failed_requests = row.failed_requests + excluded.failed_requests,
      input_tokens = row.input_tokens + excluded.input_tokens,
      output_tokens = row.output_tokens + excluded.output_tokens,
      cache_read_tokens = row.cache_read_tokens + excluded.cache_read_tokens,
      cache_write_tokens = row.cache_write_tokens + excluded.cache_write_tokens,
      value = row.value + excluded.value,
      charged = row.charged + excluded.charged
  )
  select count(*) into added from taken;
  return added;
end
$$;

-- Ends calls that nobody runs, for whom they were made. What is known of a task is known of its row: that it was never carried out, or nothing.
create or replace function end_unsettled(ids uuid[], accounts_of uuid[], amounts bigint[], forgiven boolean)
returns table (id uuid, account_id uuid, outcome text, charged bigint, overrun bigint)
language sql volatile as $$
  with ended as materialized (
    select item.id, item.account_id, item.amount, ended.outcome, ended.charged, ended.overrun, ended.ended_now, ended.settled_at
    from end_attributed_calls(
      accounts_in => array(select distinct one from unnest(accounts_of) one),
      call_days => '{}',
      call_ids => ids,
      call_accounts => accounts_of,
      call_amounts => amounts,
      call_forgiven => array(select forgiven from unnest(ids)),
      call_values => array(select coalesce(amount, 0) from unnest(amounts) amount),
      call_upstream_costs => array(select 0::bigint from unnest(ids)),
      call_executed => array(select amount is not null and not forgiven from unnest(amounts) amount),
      call_failed => array(select amount is null or forgiven from unnest(amounts) amount),
      call_input_tokens => array(select 0::bigint from unnest(ids)),
      call_output_tokens => array(select 0::bigint from unnest(ids)),
      call_cache_read_tokens => array(select 0::bigint from unnest(ids)),
      call_cache_write_tokens => array(select 0::bigint from unnest(ids)),
      call_routes => '{}', ask_credentials => '{}', ask_groups => '{}', ask_counts_tokens => '{}'
    ) with ordinality ended (outcome, charged, overrun, free, ended_now, settled_at, window_keys, window_states, place)
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

-- Marks calls whose owner is gone. It looks from the owners to their calls: mostly there is no owner whose lease has ended, and then none is
-- looked for. Where nothing is marked, it adds up some usage: workers of the last release ask for this every two seconds and for
-- add_up_usage never, and while no others run, what is in the tail has to go to usage_hours all the same.
create or replace function sweep_orphans(sweeper uuid, grace_seconds double precision, most integer) returns table (id uuid, account_id uuid, owner_id uuid)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  at constant timestamptz := clock_timestamp();
  graceful constant timestamptz := at - make_interval(secs => grace_seconds);
begin
  if pg_postmaster_start_time() > graceful
    or not exists (
      select from owners where owners.id = sweeper and least(lease_until, renew_by) >= at and held_since <= graceful
    ) then
    perform add_up_usage(most => 1000);
    return;
  end if;
  return query select orphan.id, orphan.account_id, orphan.owner_id
  from mark_unsettled(array(
    select own.id from owners cross join lateral open_calls_of(owners.id, most) own (id)
    where owners.lease_until < at limit most
  ), null) orphan;
  -- Not with the locks of what was marked.
  if not found then perform add_up_usage(most => 1000); end if;
end
$$;
