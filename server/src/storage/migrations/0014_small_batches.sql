-- What a batch costs by itself, be it of one call: begin_calls and end_calls as they were, in fewer and smaller statements.
--
-- Rows are found as before: by index, each through a lateral subquery of one row, and touched by their place (ctid), which
-- the account's lock keeps. Plans are cached for hours while tables go from empty to full and back, so none may turn.
-- Lists are put together in the order in which they were given: a lateral subquery can only be asked for one item of the
-- list after the other.
--
-- Where a batch has one of a thing, a statement without lists finds and writes it. It says the same as the one for lists
-- beside it. To start a plan is most of what a small batch costs, and one without a list, a join and sums has a third of it.

-- Whether one of these ids has ended, `days` being the days that the ids carry. Written anew by name_days_of_charges() every
-- day, with a statement for each day that calls may come for: such a statement is planned once for a connection, where one
-- that is put together from the name of a day is planned for every batch.
create function has_ended(ids uuid[], days date[]) returns boolean
language plpgsql stable as $$
begin
  return exists (select from ended_among(ids, days));
end
$$;

-- The days from two ago to a week ahead are known to has_ended() by name, those first that most calls are of; any other is
-- asked as before.
create function name_days_of_charges() returns void
language plpgsql volatile as $$
declare
  today constant date := (clock_timestamp() at time zone 'UTC')::date;
  cases text;
  body text;
begin
  select string_agg(format(
    '    when %L then if exists (select from %I where id = any (ids)) then return true; end if;',
    -- Whoever calls it may have another way to write a date than whoever writes it.
    to_char(today + day, 'YYYY-MM-DD'), 'charges_' || to_char(today + day, 'YYYYMMDD')
  ), E'\n' order by abs(day), day desc)
  into cases
  from generate_series(-2, 7) day
  where to_regclass('charges_' || to_char(today + day, 'YYYYMMDD')) is not null;

  body := format('
declare
  day date;
begin
  foreach day in array days loop
    case day
%s
    else if exists (select from ended_among(ids, array[day])) then return true; end if;
    end case;
  end loop;
  return false;
end
', cases);
  if body <> (select prosrc from pg_proc where oid = 'has_ended(uuid[], date[])'::regprocedure) then
    execute format('create or replace function has_ended(ids uuid[], days date[]) returns boolean language plpgsql stable as %L', body);
  end if;
end
$$;

-- As before, and says their names.
create or replace function make_charge_partitions() returns void
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtext('make_charge_partitions'));
  perform make_charge_partition((clock_timestamp() at time zone 'UTC')::date + day) from generate_series(-2, 7) day;
  perform name_days_of_charges();
end
$$;

select make_charge_partitions();

-- BEGIN: admits, claims and holds, or refuses, for a batch of calls. All or none for each call: a refusal for one reason
-- consumes nothing of the others.
--
-- The batch names each thing that it touches once (accounts, credentials, windows, allowances, claim sets); calls refer
-- to them by position. What a call asks of windows, allowances and claims stands flattened: *_to[i] is where the
-- items of call i end.
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

    <<judged>>
    begin
      if call_holds[i] and call_known[i] is not null then
        outcome := call_known[i]; exit judged;
      -- Whoever owes may still look at what it owes.
      elsif account is null or account_state[account] <> 'active' and (call_holds[i] or account_state[account] <> 'suspended') then
        outcome := 'account_' || coalesce(account_state[account], 'unknown'); exit judged;
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

      for j in set_from .. ask_sets_to[i] loop
        s := ask_sets[j];
        if set_members[s] >= ask_set_limits[j] then
          outcome := 'claim_taken'; subject := j - set_from;
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
      for j in window_from .. ask_windows_to[i] loop
        w := ask_windows[j];
        if window_started[w] is null then window_started[w] := at; end if;
        window_requests[w] := window_requests[w] + 1;
        if ask_token_limits[j] is not null then window_tokens[w] := window_tokens[w] + call_tokens[i]; end if;
      end loop;
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

    -- The tightest of the windows speaks in the answer's headers.
    for j in window_from .. ask_windows_to[i] loop
      w := ask_windows[j];
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

  insert into holds (id, account_id, credential_id, owner_id, operation, amount, terms, allowances, token_groups, tokens_estimated, claims, begun_at)
  select call_ids[i], accounts_in[call_accounts[i]], credentials_in[call_credentials[i]], owner_id_in, call_operations[i], call_amounts[i],
    call_terms[i], call_allowances[i]::uuid[], call_token_groups[i]::text[], call_tokens[i], ask_sets_to[i] > coalesce(ask_sets_to[i - 1], 0), at
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

-- END: posts or voids a batch of calls, once each: releases the hold, books the charge and the usage, pays debt with
-- what became free, takes what expired while it was held, corrects token windows, ends or keeps claims. An id that has
-- ended answers as the first time; an id that never began leaves a tombstone; an id of another account, or of none, is
-- left alone and answered as misplaced. What is to be posted after a void is the operator's loss.
create or replace function end_calls(
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
  call_cache_write_tokens bigint[]
) returns table (
  outcome text,
  charged bigint,
  overrun bigint,
  free bigint,
  -- Whether it was this statement that ended the call.
  ended_now boolean,
  settled_at timestamptz
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
  has_entries boolean := false; has_late boolean := false;
  claims_kept tid[];
  claims_ended tid[];
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
  -- The window of a call still stands if none has begun since.
  if calls = 1 and call_outcomes[1] is not null and own.id is not null then
    foreach allowance in array own.allowances loop
      update allowance_periods row set held = row.held - own.amount, charged = row.charged + call_charges[1]
      where row.ctid = (
        select ctid from allowance_periods where allowance_id = allowance and starts_at <= own.begun_at order by starts_at desc limit 1
      );
    end loop;
    foreach token_group in array own.token_groups loop
      update windows row set tokens = greatest(0, row.tokens
        + call_input_tokens[1] + call_output_tokens[1] + call_cache_read_tokens[1] + call_cache_write_tokens[1] - own.tokens_estimated)
      where row.credential_id = own.credential_id and row.limit_group = token_group and row.started_at <= own.begun_at;
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
      update windows row set tokens = greatest(0, row.tokens + change.difference)
      from (
        select standing.place,
          sum(call_input_tokens[hold.ordinality] + call_output_tokens[hold.ordinality] + call_cache_read_tokens[hold.ordinality]
            + call_cache_write_tokens[hold.ordinality] - hold.tokens_estimated)::bigint as difference
        from unnest(ending) with ordinality hold
        cross join unnest(hold.token_groups) one (limit_group)
        cross join lateral (
          select ctid as place from windows
          where windows.credential_id = hold.credential_id and windows.limit_group = one.limit_group and started_at <= hold.begun_at limit 1
        ) standing
        group by standing.place
      ) change
      where row.ctid = change.place;
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

  for i in 1 .. calls loop
    account := array_position(locked, call_accounts[i]);
    ended_now := call_outcomes[i] is not null;
    outcome := coalesce(call_outcomes[i], before_outcomes[i], 'misplaced');
    charged := coalesce(before_charges[i], call_charges[i]);
    overrun := coalesce(before_overruns[i], coalesce(call_amounts[i], 0) - call_charges[i]);
    free := account_free[account];
    return next;
  end loop;
end
$$;
