-- END: posts or voids a batch of calls, once each: releases the hold, books the charge and the usage, pays debt with
-- what became free, takes what expired while it was held, corrects token windows, ends or keeps claims. An id that has
-- ended answers as the first time; an id that never began leaves a tombstone; an id of another account, or of none, is
-- left alone and answered as misplaced. What is to be posted after a void is the operator's loss.
--
-- What calls reserved of token windows and did not use is given back, and what they used beyond it is added: to the window that
-- they reserved in last, as they began or were extended, if no other has begun since. What they reserved in windows before that one
-- counts as used there. The windows as they are then are told with the first row.
--
-- Usage is noted in usage_tail, a row for the batch's calls that are alike in whose they are, which add_up_usage adds to the sums.
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
  -- What they used beyond what they reserved in the last window that they reserved in.
  call_differences bigint[] := call_charges;
  has_allowances boolean := false; has_meters boolean := false; has_groups boolean := false; has_claims boolean := false;
  has_entries boolean := false; has_late boolean := false; has_ended_before boolean := false;
  claims_kept tid[];
  claims_ended tid[];
  asks constant boolean := ask_groups <> '{}';
  told double precision[];
  account integer; freed bigint; token_group text;
begin
  -- Who waits for a lock is given the row as it is then. Of anything else a statement that locks sees what was there before
  -- it waited: so this one reads what it locks, and nothing else.
  select array_agg(id), array_agg(ctid), array_agg(credited + debt - row.charged - held), array_agg(debt), array_agg(promo), array_agg(lapsed)
  into locked, account_rows, account_free, account_debt, account_promo, account_lapsed
  from (select ctid, * from accounts where id = any (accounts_in) order by id for no key update) row;
  at := clock_timestamp();
  settled_at := at;

  ending := array(
    select row.hold from unnest(call_ids) item (id)
    left join lateral (select holds as hold from holds where id = item.id limit 1) row on true
  );

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
      call_differences[i] := greatest(0,
        call_input_tokens[i] + call_output_tokens[i] + call_cache_read_tokens[i] + call_cache_write_tokens[i] - own.tokens_moved)
        - (own.tokens_estimated - own.tokens_moved);
      has_allowances := has_allowances or own.allowances <> '{}';
      has_meters := has_meters or own.at_once or 'all' = any (own.token_groups);
      has_groups := has_groups or 'all' <> any (own.token_groups);
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

  update accounts row set
    charged = row.charged + account_charge[place],
    held = row.held - account_release[place],
    credited = row.credited - account_expired[place],
    promo = account_promo[place] - account_expired[place],
    lapsed = account_lapsed[place] - account_expired[place],
    debt = row.debt - account_debt_paid[place]
  from unnest(account_rows) with ordinality item (ctid, place)
  where row.ctid = item.ctid and account_release[place] > 0;

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
    if has_allowances then
      perform settle_allowances(own.allowances, array[own.begun_at], array[own.amount], array[call_charges[1]]);
    end if;
    if has_meters then
      update credentials row set
        calls_at_once = row.calls_at_once - own.at_once::integer,
        all_tokens = case when 'all' = any (own.token_groups) and row.all_started_at <= coalesce(own.reserved_at, own.begun_at)
          then greatest(0, row.all_tokens + call_differences[1]) else row.all_tokens end
      where row.id = own.credential_id
      returning array[date_part('epoch', row.all_started_at), row.all_requests, row.all_tokens] into told;
      if asks and told[1] is not null and 'all' = any (own.token_groups) then
        window_keys := window_keys || (own.credential_id || ' all');
        window_states := window_states || array[told];
      end if;
    end if;
    if has_groups then
      foreach token_group in array own.token_groups loop
        continue when token_group = 'all';
        update group_windows row set tokens = case when row.started_at <= coalesce(own.reserved_at, own.begun_at)
          then greatest(0, row.tokens + call_differences[1]) else row.tokens end
        where row.credential_id = own.credential_id and row.limit_group = token_group
        returning array[date_part('epoch', row.started_at), row.requests, row.tokens] into told;
        if found and asks then
          window_keys := window_keys || (own.credential_id || ' ' || token_group);
          window_states := window_states || array[told];
        end if;
      end loop;
    end if;
    if own.claims then
      delete from claims where call_id = own.id and not (keep_seconds > 0 and call_charges[1] > 0);
      update claims set kept_until = at + make_interval(secs => keep_seconds) where call_id = own.id and keep_seconds > 0;
    end if;
    insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at,
      model, route, end_user, end_user_label, tags)
    values (own.id, own.account_id, own.credential_id, own.operation, call_outcomes[1], own.amount, call_charges[1],
      call_promos[1], coalesce(call_amounts[1], 0) - call_charges[1], call_values[1], call_upstream_costs[1],
      call_executed[1] or call_charges[1] > 0, call_failed[1],
      call_input_tokens[1], call_output_tokens[1], call_cache_read_tokens[1], call_cache_write_tokens[1],
      own.allowances, own.begun_at, at,
      own.asked_model, call_routes[1], own.end_user, own.end_user_label, own.tags);
    if call_executed[1] or call_charges[1] > 0 then
      insert into usage_tail (account_id, credential_id, at, operation, model, end_user, end_user_label, tags,
        requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
      values (own.account_id, own.credential_id, at, own.operation, own.asked_model, own.end_user, own.end_user_label, own.tags,
        1, call_failed[1]::integer,
        call_input_tokens[1], call_output_tokens[1], call_cache_read_tokens[1], call_cache_write_tokens[1], call_values[1], call_charges[1]);
    end if;
    delete from holds where id = own.id;
  else
    if has_allowances then
      perform settle_allowances(array_agg(one.id), array_agg(hold.begun_at), array_agg(hold.amount), array_agg(call_charges[hold.ordinality]))
      from unnest(ending) with ordinality hold cross join unnest(hold.allowances) one (id)
      where hold.amount > 0;
    end if;

    if has_meters then
      with changed as (
        update credentials row set
          calls_at_once = row.calls_at_once - change.places,
          all_tokens = case when change.counts then greatest(0, row.all_tokens + change.difference) else row.all_tokens end
        from (
          select hold.credential_id as id, count(*) filter (where hold.at_once) as places, bool_or('all' = any (hold.token_groups)) as counts,
            sum(case when 'all' = any (hold.token_groups) and standing.started_at <= coalesce(hold.reserved_at, hold.begun_at)
              then call_differences[hold.ordinality] else 0 end)::bigint as difference
          from unnest(ending) with ordinality hold
          cross join lateral (select all_started_at as started_at from credentials where credentials.id = hold.credential_id limit 1) standing
          where hold.at_once or 'all' = any (hold.token_groups)
          group by hold.credential_id
        ) change
        where row.id = any (array[change.id])
        returning row.id, row.all_started_at, row.all_requests, row.all_tokens, change.counts
      )
      select array_agg(id || ' all'), array_agg(array[date_part('epoch', all_started_at), all_requests, all_tokens])
      into window_keys, window_states from changed where counts and all_started_at is not null;
    end if;

    if has_groups then
      with changed as (
        update group_windows row set tokens = greatest(0, row.tokens + change.difference)
        from (
          select hold.credential_id, one.limit_group,
            sum(case when standing.started_at <= coalesce(hold.reserved_at, hold.begun_at)
              then call_differences[hold.ordinality] else 0 end)::bigint as difference
          from unnest(ending) with ordinality hold
          cross join unnest(hold.token_groups) one (limit_group)
          cross join lateral (
            select started_at from group_windows kept
            where kept.credential_id = hold.credential_id and kept.limit_group = one.limit_group limit 1
          ) standing
          where one.limit_group <> 'all'
          group by hold.credential_id, one.limit_group
        ) change
        where row.credential_id = any (array[change.credential_id]) and row.limit_group = any (array[change.limit_group])
        returning row.*
      )
      select window_keys || array_agg(credential_id || ' ' || limit_group),
        window_states || array_agg(array[date_part('epoch', started_at), requests, tokens])
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
      model, route, end_user, end_user_label, tags)
    select call_ids[i], call_accounts[i], hold.credential_id, hold.operation, call_outcomes[i], coalesce(hold.amount, 0), call_charges[i],
      call_promos[i], coalesce(call_amounts[i], 0) - call_charges[i], call_values[i], call_upstream_costs[i],
      call_executed[i] or call_charges[i] > 0, call_failed[i],
      call_input_tokens[i], call_output_tokens[i], call_cache_read_tokens[i], call_cache_write_tokens[i],
      coalesce(hold.allowances, '{}'), hold.begun_at, at,
      hold.asked_model, call_routes[i], hold.end_user, hold.end_user_label, hold.tags
    from unnest(ending) with ordinality hold cross join lateral (select hold.ordinality) item (i)
    where call_outcomes[i] is not null;

    insert into usage_tail (account_id, credential_id, at, operation, model, end_user, end_user_label, tags,
      requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select hold.account_id, hold.credential_id, at, hold.operation, hold.asked_model, hold.end_user, hold.end_user_label, hold.tags,
      count(*), count(*) filter (where call_failed[i]),
      sum(call_input_tokens[i]), sum(call_output_tokens[i]), sum(call_cache_read_tokens[i]), sum(call_cache_write_tokens[i]),
      sum(call_values[i]), sum(call_charges[i])
    from unnest(ending) with ordinality hold cross join lateral (select hold.ordinality) item (i)
    where hold.id is not null and (call_executed[i] or call_charges[i] > 0)
    group by hold.account_id, hold.credential_id, hold.operation, hold.asked_model, hold.end_user, hold.end_user_label, hold.tags;

    delete from holds where id = any (array(select hold.id from unnest(ending) hold));
  end if;

  -- What was not changed has to be read: windows of endpoints with a limit of their own, and, seldom, those of calls that had ended before.
  if asks and (has_ended_before or false = any (ask_counts_tokens)) then
    select array_agg(row.credential_id || ' ' || row.limit_group),
      array_agg(array[date_part('epoch', row.started_at), row.requests, row.tokens])
    into window_keys, window_states
    from unnest(ask_credentials, ask_groups) item (credential_id, limit_group)
    cross join lateral (
      select id as credential_id, 'all' as limit_group, all_started_at as started_at, all_requests as requests, all_tokens as tokens from credentials
      where item.limit_group = 'all' and id = item.credential_id and all_started_at is not null
      union all
      select kept.credential_id, kept.limit_group, kept.started_at, kept.requests, kept.tokens from group_windows kept
      where item.limit_group <> 'all' and kept.credential_id = item.credential_id and kept.limit_group = item.limit_group
      limit 1
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
