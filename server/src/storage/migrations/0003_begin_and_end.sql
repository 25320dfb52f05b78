-- Both functions find rows by index, each through a lateral subquery of one row, and touch them by their place (ctid),
-- which the account's lock keeps. Their plans are cached for hours while tables such as holds go from empty to full
-- and back: a join that the planner may turn around, or answer by reading a table that was empty once, would cost a
-- thousand times more on a busy day.

-- Those of these ids that have ended, and how, `days` being the days that the ids carry. The charges of a day are asked by
-- name: a plan over all partitions would open and lock a thousand of them for every batch. Fails where a day has no
-- partition, before anything is held.
create function ended_among(ids uuid[], days date[]) returns table (id uuid, account_id uuid, outcome text, amount bigint, overrun bigint)
language plpgsql stable as $$
declare
  day date;
begin
  foreach day in array days loop
    return query execute
      'select id, account_id, outcome, amount, overrun from charges_' || to_char(day, 'YYYYMMDD') || ' where id = any ($1)' using ids;
  end loop;
end
$$;

-- BEGIN: admits, claims and holds, or refuses, for a batch of calls. All or none for each call: a refusal for one reason
-- consumes nothing of the others.
--
-- The batch names each thing that it touches once (accounts, credentials, windows, allowances, claim sets); calls refer
-- to them by position. What a call asks of windows, allowances and claims stands flattened: *_to[i] is where the
-- items of call i end.
create function begin_calls(
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
  account_rows tid[];
  account_free bigint[];
  account_state text[];
  account_held bigint[] := array_fill(0::bigint, array[cardinality(accounts_in)]);
  credential_account uuid[];
  credential_active boolean[];
  ended uuid[];
  call_known text[];
  window_started timestamptz[];
  window_requests integer[];
  window_tokens bigint[];
  window_touched boolean[];
  day_start timestamptz; month_start timestamptz; always_start timestamptz;
  allowance_account uuid[];
  allowance_starts timestamptz[];
  allowance_amounts bigint[];
  allowance_free bigint[];
  allowance_held bigint[] := array_fill(0::bigint, array[cardinality(allowances_in)]);
  set_members integer[];
  set_holders uuid[];
  set_fingerprints text[];
  call_begins boolean[] := array_fill(false, array[calls]);
  w integer; a integer; s integer; account integer; credential integer;
  window_from integer := 1; allowance_from integer := 1; set_from integer := 1;
begin
  -- This statement only locks. A statement that locks and reads sees what was there before it waited.
  perform 1 from accounts where id = any (accounts_in) order by id for no key update;
  at := clock_timestamp();
  judged_at := at;

  select
    array_agg(row.ctid order by place),
    array_agg(row.credited + row.debt - row.charged - row.held order by place),
    array_agg(case when row.id is null then 'unknown' when not row.active then 'inactive' when row.debt > 0 then 'suspended' else 'active' end order by place)
  into account_rows, account_free, account_state
  from unnest(accounts_in) with ordinality item (id, place)
  left join lateral (select ctid, accounts.* from accounts where accounts.id = item.id limit 1) row on true;

  select array_agg(row.account_id order by place), array_agg(coalesce(row.active, false) order by place)
  into credential_account, credential_active
  from unnest(credentials_in) with ordinality item (id, place)
  left join lateral (select account_id, active from credentials where credentials.id = item.id limit 1) row on true;

  -- The same id again answers as the first time; an id that has ended, or was voided before it came, holds nothing.
  ended := array(select id from ended_among(call_ids, call_days));
  select array_agg(case
    when hold.account_id = accounts_in[item.account] then 'begun'
    when hold.account_id is not null or item.id = any (ended) then 'ended' end order by place)
  into call_known
  from unnest(call_ids, call_accounts) with ordinality item (id, account, place)
  left join lateral (select account_id from holds where holds.id = item.id limit 1) hold on true;

  if cardinality(window_groups) > 0 then
    select
      array_agg(case when row.started_at + make_interval(secs => seconds) > at then row.started_at end order by place),
      array_agg(case when row.started_at + make_interval(secs => seconds) > at then row.requests else 0 end order by place),
      array_agg(case when row.started_at + make_interval(secs => seconds) > at then row.tokens else 0 end order by place)
    into window_started, window_requests, window_tokens
    from unnest(window_credentials, window_groups, window_seconds) with ordinality item (credential_id, limit_group, seconds, place)
    left join lateral (
      select started_at, requests, tokens from windows
      where windows.credential_id = item.credential_id and windows.limit_group = item.limit_group limit 1
    ) row on true;
    window_touched := array_fill(false, array[cardinality(window_groups)]);
  end if;

  if cardinality(allowances_in) > 0 then
    day_start := period_start('day', at); month_start := period_start('month', at); always_start := period_start('total', at);
    select
      array_agg(allowance.account_id order by place),
      array_agg(allowance.starts_at order by place),
      array_agg(coalesce(row.amount, allowance.amount) order by place),
      -- One that was lowered below what was spoken for stays lowered when some of that comes free.
      array_agg(greatest(0, coalesce(least(row.amount, allowance.amount) - row.charged - row.held, allowance.amount)) order by place)
    into allowance_account, allowance_starts, allowance_amounts, allowance_free
    from unnest(allowances_in) with ordinality item (id, place)
    left join lateral (
      select account_id, amount, case period when 'day' then day_start when 'month' then month_start else always_start end as starts_at
      from allowances where allowances.id = item.id limit 1
    ) allowance on true
    left join lateral (
      select amount, charged, held from allowance_periods where allowance_id = item.id and starts_at = allowance.starts_at limit 1
    ) row on true;
  end if;

  if cardinality(set_keys) > 0 then
    select array_agg(members order by place), array_agg(one order by place), array_agg(fingerprint order by place)
    into set_members, set_holders, set_fingerprints
    from (
      select place, count(row.call_id)::integer as members, min(row.call_id::text)::uuid as one, min(row.fingerprint) as fingerprint
      from unnest(set_credentials, set_scopes, set_keys) with ordinality item (credential_id, scope, key, place)
      left join lateral (
        select call_id, fingerprint from claims
        where claims.credential_id = item.credential_id and claims.scope = item.scope and claims.key = item.key
          and (kept_until is null or kept_until > at)
        limit 1000000
      ) row on true
      group by place
    ) sets;
  end if;

  -- Judged in the order of arrival, each against what the ones before it have left.
  for i in 1 .. calls loop
    account := call_accounts[i];
    credential := call_credentials[i];

    if call_holds[i] and call_known[i] is not null then
      outcome := call_known[i];
    -- Whoever owes may still look at what it owes.
    elsif account_state[account] <> 'active' and (call_holds[i] or account_state[account] <> 'suspended') then
      outcome := 'account_' || account_state[account];
    elsif not credential_active[credential] or credential_account[credential] <> accounts_in[account] then
      outcome := 'credential_inactive';
    else
      outcome := 'begun';

      for j in window_from .. ask_windows_to[i] loop
        w := ask_windows[j];
        if window_requests[w] >= ask_request_limits[j] then
          outcome := 'requests_spent'; subject := j - window_from; exit;
        -- A call without tokens is not refused for them: it asks only how many are left.
        elsif call_tokens[i] > 0 and window_tokens[w] + call_tokens[i] > ask_token_limits[j] then
          outcome := 'tokens_spent'; subject := j - window_from; exit;
        end if;
      end loop;

      if outcome = 'begun' then
        for j in set_from .. ask_sets_to[i] loop
          s := ask_sets[j];
          if set_members[s] >= ask_set_limits[j] then
            holder := case when ask_set_limits[j] = 1 then set_holders[s] end;
            outcome := case when holder is not null and set_fingerprints[s] <> ask_fingerprints[j] then 'claim_differs' else 'claim_taken' end;
            subject := j - set_from; exit;
          end if;
        end loop;
      end if;

      if outcome = 'begun' and call_holds[i] then
        for j in allowance_from .. ask_allowances_to[i] loop
          a := ask_allowances[j];
          allowance_left := case when allowance_account[a] = accounts_in[account] then allowance_free[a] else 0 end;
          if call_amounts[i] > allowance_left or allowance_account[a] is distinct from accounts_in[account] then
            outcome := 'allowance_spent'; subject := j - allowance_from; exit;
          end if;
        end loop;
        if outcome = 'begun' and call_amounts[i] > account_free[account] then
          outcome := 'money_spent';
        end if;
      end if;

      if outcome = 'begun' then
        call_begins[i] := true;
        for j in window_from .. ask_windows_to[i] loop
          w := ask_windows[j];
          if window_started[w] is null then window_started[w] := at; end if;
          window_requests[w] := window_requests[w] + 1;
          if ask_token_limits[j] is not null then window_tokens[w] := window_tokens[w] + call_tokens[i]; end if;
          window_touched[w] := true;
        end loop;
        if call_holds[i] then
          for j in set_from .. ask_sets_to[i] loop
            s := ask_sets[j];
            set_members[s] := set_members[s] + 1;
            set_holders[s] := coalesce(set_holders[s], call_ids[i]);
            set_fingerprints[s] := coalesce(set_fingerprints[s], ask_fingerprints[j]);
          end loop;
          for j in allowance_from .. ask_allowances_to[i] loop
            a := ask_allowances[j];
            allowance_free[a] := allowance_free[a] - call_amounts[i];
            allowance_held[a] := allowance_held[a] + call_amounts[i];
          end loop;
          account_free[account] := account_free[account] - call_amounts[i];
          account_held[account] := account_held[account] + call_amounts[i];
        end if;
      end if;
    end if;

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

    requests_left := null; tokens_left := null; request_limit := null; token_limit := null;
    if outcome <> 'begun' then subject := null; holder := null; end if;
    window_from := ask_windows_to[i] + 1;
    set_from := ask_sets_to[i] + 1;
    allowance_from := ask_allowances_to[i] + 1;
  end loop;

  update accounts row set held = row.held + item.held
  from unnest(account_rows, account_held) item (place, held)
  where row.ctid = item.place and item.held > 0;

  insert into holds (id, account_id, credential_id, owner_id, operation, amount, terms, allowances, token_groups, tokens_estimated, claims, begun_at)
  select item.id, accounts_in[item.account], credentials_in[item.credential], owner_id_in, item.operation, item.amount, item.terms,
    item.allowances::uuid[], item.token_groups::text[], item.tokens, item.sets_to > item.sets_from, at
  from unnest(call_ids, call_accounts, call_credentials, call_holds, call_begins, call_operations, call_amounts, call_terms, call_allowances, call_token_groups, call_tokens,
      ask_sets_to, 0 || ask_sets_to[: calls - 1])
    item (id, account, credential, holds, begins, operation, amount, terms, allowances, token_groups, tokens, sets_to, sets_from)
  where item.holds and item.begins;

  if cardinality(window_groups) > 0 then
    insert into windows as row (credential_id, limit_group, started_at, requests, tokens)
    select item.credential_id, item.limit_group, item.started_at, item.requests, item.tokens
    from unnest(window_credentials, window_groups, window_started, window_requests, window_tokens, window_touched) item (credential_id, limit_group, started_at, requests, tokens, touched)
    where item.touched
    on conflict (credential_id, limit_group) do update
    set started_at = excluded.started_at, requests = excluded.requests, tokens = excluded.tokens;
  end if;

  if cardinality(allowances_in) > 0 then
    insert into allowance_periods as row (allowance_id, starts_at, amount, held)
    select item.id, item.starts_at, item.amount, item.held
    from unnest(allowances_in, allowance_starts, allowance_amounts, allowance_held) item (id, starts_at, amount, held)
    where item.held > 0
    on conflict (allowance_id, starts_at) do update set held = row.held + excluded.held;
  end if;

  if cardinality(set_keys) > 0 then
    insert into claims (credential_id, scope, key, call_id, fingerprint, keep_seconds, ends_with_owner)
    select set_credentials[ask_sets[j]], set_scopes[ask_sets[j]], set_keys[ask_sets[j]], call_ids[i], ask_fingerprints[j], ask_keep_seconds[j],
      ask_ends_with_owner[j]
    from generate_series(1, calls) i
    cross join lateral generate_series(case when i = 1 then 1 else ask_sets_to[i - 1] + 1 end, ask_sets_to[i]) j
    where call_begins[i] and call_holds[i];
  end if;
end
$$;

-- END: posts or voids a batch of calls, once each: releases the hold, books the charge and the usage, pays debt with
-- what became free, takes what expired while it was held, corrects token windows, ends or keeps claims. An id that has
-- ended answers as the first time; an id that never began leaves a tombstone; an id of another account, or of none, is
-- left alone and answered as misplaced. What is to be posted after a void is the operator's loss.
create function end_calls(
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
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  at timestamptz;
  ended_ids uuid[];
  ended_accounts uuid[];
  ended_outcomes text[];
  ended_amounts bigint[];
  ended_overruns bigint[];
begin
  perform 1 from accounts where id = any (accounts_in) order by id for no key update;
  at := clock_timestamp();

  -- Seldom: a repeated ending, or one of a call that never began.
  if (select count(*) from holds where id = any (call_ids)) < cardinality(call_ids) then
    select array_agg(id), array_agg(account_id), array_agg(outcome), array_agg(amount), array_agg(overrun)
    into ended_ids, ended_accounts, ended_outcomes, ended_amounts, ended_overruns
    from ended_among(call_ids, call_days);
  end if;

  return query
  with item as (
    select given.*,
      hold.ctid as hold_place, hold.credential_id, hold.operation, hold.amount as held, hold.allowances, hold.token_groups,
      hold.tokens_estimated, hold.claims, hold.begun_at,
      account.id is null or coalesce(found.account_id, before.account_id, given.account_id) <> given.account_id as misplaced,
      before.outcome as outcome_before, before.amount as charge_before, before.overrun as overrun_before,
      account.ctid as account_place, account.promo as promo_before, account.lapsed as lapsed_before, account.debt as debt_before,
      account.held as held_before, account.credited + account.debt - account.charged - account.held as free_before,
      case
        when hold.id is null or given.forgiven then 0
        else least(coalesce(given.amount, 0), hold.amount)
      end as charge
    from unnest(call_ids, call_accounts, call_amounts, call_forgiven, call_values, call_upstream_costs, call_executed, call_failed,
      call_input_tokens, call_output_tokens, call_cache_read_tokens, call_cache_write_tokens) with ordinality
      given (id, account_id, amount, forgiven, value, upstream_cost, executed, failed,
        input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, place)
    left join lateral (select ctid, accounts.* from accounts where accounts.id = given.account_id limit 1) account on true
    left join lateral (
      select ctid, holds.* from holds where holds.id = given.id limit 1
    ) found on true
    left join lateral (select found.*) hold on found.account_id = given.account_id
    left join lateral (
      select one.account_id, one.outcome, one.amount, one.overrun
      from unnest(ended_ids, ended_accounts, ended_outcomes, ended_amounts, ended_overruns) one (id, account_id, outcome, amount, overrun)
      where hold.id is null and one.id = given.id limit 1
    ) before on true
  ), judged as (
    -- Sums over the batch's calls of an account: so far, for the order in which promotional credit is spent; and in all.
    select item.*,
      sum(charge) over (partition by account_id order by place) as charge_so_far,
      sum(charge) over account as account_charge,
      sum(coalesce(held, 0)) over account as account_release
    from item
    window account as (partition by account_id)
  ), accounted as (
    -- What the endings release pays debt first; what is left of it may be promotional credit that has expired meanwhile.
    -- The endings of a batch happen at once: what they charge is spent before what they release is taken.
    select judged.*, freed, debt_paid, promo_left, lapsed_left,
      least(lapsed_left, freed - debt_paid, account_release - account_charge) as expired
    from judged
    cross join lateral (
      select free_before + account_release - account_charge as freed,
        least(debt_before, free_before + account_release - account_charge) as debt_paid,
        promo_before - least(promo_before, account_charge) as promo_left,
        lapsed_before - least(lapsed_before, account_charge) as lapsed_left
    ) released
  ), ending as (
    select accounted.*,
      coalesce(amount, 0) - charge as over,
      case when hold_place is not null and amount is not null and not forgiven then 'posted' else 'voided' end as new_outcome
    from accounted
    where outcome_before is null and not misplaced
  ), account_change as (
    select distinct on (account_place) * from ending where hold_place is not null
  ), accounts_changed as (
    update accounts row set
      charged = row.charged + change.account_charge,
      held = row.held - change.account_release,
      credited = row.credited - change.expired,
      promo = change.promo_left - change.expired,
      lapsed = change.lapsed_left - change.expired,
      debt = row.debt - change.debt_paid
    from account_change change
    where row.ctid = change.account_place
  ), entries_made as (
    insert into entries (id, account_id, kind, credited, promo, debt, entered_at)
    select gen_random_uuid(), account_id, 'debt_payment', 0, 0, -debt_paid, at
    from account_change where debt_paid > 0
    union all
    select gen_random_uuid(), account_id, 'expiry', -expired, -expired, 0, at
    from account_change where expired > 0
  ), late as (
    insert into entries (id, account_id, kind, overrun, corrects, entered_at)
    select id, account_id, 'late_settlement', coalesce(amount, 0) - overrun_before, id, at
    from judged where outcome_before = 'voided' and not misplaced and coalesce(amount, 0) <> overrun_before
    on conflict (id) do nothing
  ), released as (
    delete from holds where ctid = any (array(select hold_place from ending where hold_place is not null))
  ), booked as (
    insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at)
    select id, account_id, credential_id, operation, new_outcome, coalesce(held, 0), charge,
      least(promo_before, charge_so_far) - least(promo_before, charge_so_far - charge),
      over, value, upstream_cost, executed or charge > 0, failed,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, coalesce(allowances, '{}'), begun_at, at
    from ending
  ), usage_booked as (
    insert into usage_hours as row (credential_id, hour, account_id, requests, failed_requests,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select credential_id, date_trunc('hour', at, 'UTC'), account_id, count(*), count(*) filter (where failed),
      sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charge)
    from ending where hold_place is not null and (executed or charge > 0)
    group by credential_id, account_id
    on conflict (credential_id, hour) do update set
      requests = row.requests + excluded.requests,
      failed_requests = row.failed_requests + excluded.failed_requests,
      input_tokens = row.input_tokens + excluded.input_tokens,
      output_tokens = row.output_tokens + excluded.output_tokens,
      cache_read_tokens = row.cache_read_tokens + excluded.cache_read_tokens,
      cache_write_tokens = row.cache_write_tokens + excluded.cache_write_tokens,
      value = row.value + excluded.value,
      charged = row.charged + excluded.charged
  ), allowances_changed as (
    update allowance_periods row set held = row.held - change.held, charged = row.charged + change.charge
    from (
      select period.place, sum(ending.held) as held, sum(ending.charge) as charge
      from ending cross join unnest(ending.allowances) one (id)
      cross join lateral (select period from allowances where allowances.id = one.id limit 1) allowance
      cross join lateral (
        select ctid as place from allowance_periods
        where allowance_id = one.id and starts_at = period_start(allowance.period, ending.begun_at) limit 1
      ) period
      where ending.hold_place is not null and ending.held > 0
      group by period.place
    ) change
    where row.ctid = change.place
  ), tokens_corrected as (
    -- The window of the call still stands if none has begun since.
    update windows row set tokens = greatest(0, row.tokens + change.difference)
    from (
      select standing.place,
        sum(ending.input_tokens + ending.output_tokens + ending.cache_read_tokens + ending.cache_write_tokens - ending.tokens_estimated) as difference
      from ending cross join unnest(ending.token_groups) one (limit_group)
      cross join lateral (
        select ctid as place from windows
        where windows.credential_id = ending.credential_id and windows.limit_group = one.limit_group and started_at <= ending.begun_at limit 1
      ) standing
      where ending.hold_place is not null
      group by standing.place
    ) change
    where row.ctid = change.place
  ), claim as (
    select row.place, row.keep_seconds > 0 and ending.charge > 0 as kept
    from (select id, charge from ending where claims) ending
    cross join lateral (select ctid as place, keep_seconds from claims where claims.call_id = ending.id limit 100) row
  ), claims_ended as (
    delete from claims where ctid = any (array(select place from claim where not kept))
  ), claims_kept as (
    update claims set kept_until = at + make_interval(secs => keep_seconds)
    where ctid = any (array(select place from claim where kept))
  )
  select
    case when misplaced then 'misplaced' when outcome_before is not null then outcome_before when hold_place is not null and amount is not null and not forgiven then 'posted' else 'voided' end,
    coalesce(charge_before, charge),
    coalesce(overrun_before, coalesce(amount, 0) - charge),
    (freed - debt_paid - expired)::bigint,
    outcome_before is null and not misplaced,
    at
  from accounted
  order by place;
end
$$;
