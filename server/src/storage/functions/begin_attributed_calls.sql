-- BEGIN: admits, claims and holds, or refuses, for a batch of calls. All or none for each call: a refusal for one reason
-- consumes nothing of the others, but for the request that it may cost.
--
-- The batch names each thing that it touches once (accounts, credentials, windows, allowances, claim sets); calls refer
-- to them by position. What a call asks of windows, allowances and claims stands flattened: *_to[i] is where the
-- items of call i end.
--
-- What a credential has of its own stands in its row: the window of all its requests, how many calls it has at once, and the running period of its own
-- budget where meter_budget() has put it there. Windows of other groups stand in group_windows, other periods in kept_periods.
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
  judged_at timestamptz,
  -- All of the call's allowances that refused it, counted as the subject is.
  refusing integer[]
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
  -- The credentials in whose rows those periods stand that are not among the kept ones.
  allowance_meters uuid[];
  allowance_starts timestamptz[];
  allowance_amounts bigint[];
  allowance_free bigint[];
  allowance_before bigint[];
  set_members integer[];
  -- Those whose holds have been counted.
  set_counted boolean[];
  members integer;
  taken_for text;
  -- Of each credential that changes: its window of all requests, by how many its calls at once grow, and how many there were where that was wrong.
  meter_windows integer[];
  meter_places integer[];
  meter_recounts integer[];
  -- What is held of budgets that stand with the credentials whose calls they are of.
  meter_held bigint[];
  -- The calls that begin to hold; those of them that have a place among the calls at once, and those that have claims.
  held_calls integer[];
  call_at_once boolean[];
  call_claims boolean[];
  -- The claims that they get: which call, and which of all that were asked for.
  claim_calls integer[];
  claim_asks integer[];
  takes_request boolean;
  has_kept boolean := false;
  has_groups constant boolean := 'all' <> any (window_groups);
  a integer; w integer; s integer; account integer; fits bigint;
  window_from integer := 1; allowance_from integer := 1; set_from integer := 1;
begin
  -- Who waits for a lock is given the row as it is then. Of anything else a statement that locks sees what was there before
  -- it waited: so this one reads what it locks, and nothing else.
  select array_agg(id), array_agg(ctid), array_agg(credited + debt - charged - held),
    array_agg(case when not active then 'inactive' when debt > 0 then 'suspended' else 'active' end)
  into locked, account_rows, account_free, account_state
  from (select ctid, * from accounts where id = any (accounts_in) order by id for no key update) row;
  at := clock_timestamp();
  judged_at := at;
  free_before := account_free;

  -- Whose money each may spend: nobody's where it is not active.
  credential_of := array(
    select row.account_id from unnest(credentials_in) item (id)
    left join lateral (select account_id from credentials where id = item.id and active limit 1) row on true
  );

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

  if window_groups <> '{}' then
    select array_agg(row.started_at), array_agg(coalesce(row.requests, 0)), array_agg(coalesce(row.tokens, 0))
    into window_started, window_requests, window_tokens
    from unnest(window_groups) with ordinality item (limit_group, place)
    left join lateral (
      select all_started_at as started_at, own.all_requests as requests, own.all_tokens as tokens from credentials own
      where item.limit_group = 'all' and id = window_credentials[place]
        and all_started_at + make_interval(secs => window_seconds[place]) > at
      union all
      select started_at, requests, tokens from group_windows
      where item.limit_group <> 'all' and credential_id = window_credentials[place] and limit_group = item.limit_group
        and started_at + make_interval(secs => window_seconds[place]) > at
      limit 1
    ) row on true;
  end if;
  requests_before := window_requests;

  if allowances_in <> '{}' then
    select array_agg(allowance.account_id), array_agg(allowance.starts_at), array_agg(coalesce(row.amount, allowance.amount)), array_agg(row.meter),
      array_agg(greatest(0, coalesce(least(row.amount, allowance.amount) - row.charged - row.held, allowance.amount)))
    into allowance_account, allowance_starts, allowance_amounts, allowance_meters, allowance_free
    from unnest(allowances_in) item (id)
    left join lateral (
      select own.account_id, own.credential_id, coalesce(budget.amount, own.amount) as amount, budget.amount as followed, period_start(own.period, at) as starts_at
      from allowances own left join lateral (select amount from budgets where id = own.follows limit 1) budget on true where own.id = item.id limit 1
    ) allowance on true
    left join lateral (
      select coalesce(allowance.followed, amount) as amount, charged, held, null::uuid as meter from kept_periods
      where allowance_id = item.id and starts_at = allowance.starts_at
      union all
      select coalesce(allowance.followed, budget_amount), budget_charged, budget_held, own.id from credentials own
      where own.id = allowance.credential_id and budget_id = item.id and budget_starts_at = allowance.starts_at
      limit 1
    ) row on true;
  end if;
  allowance_before := allowance_free;

  if set_keys <> '{}' then
    set_members := array(
      select case when (set_scopes[place], item.key) = ('concurrency', 'all')
        then coalesce((select calls_at_once from credentials where id = set_credentials[place]), 0)
        else (
          select count(*)::integer from claims
          where credential_id = set_credentials[place] and scope = set_scopes[place] and claims.key = item.key
            and (kept_until is null or kept_until > at)
        ) end
      from unnest(set_keys) with ordinality item (key, place)
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
        if set_members[s] >= ask_set_limits[j] and (set_scopes[s], set_keys[s]) = ('concurrency', 'all') and set_counted[s] is null then
          -- Nobody is refused by a count alone: what the holds say is right, and the count is put right with it.
          set_counted[s] := true;
          members := (select count(*) from holds where credential_id = set_credentials[s] and at_once);
          a := call_credentials[i];
          if members + coalesce(meter_places[a], 0) <> set_members[s] then
            meter_recounts[a] := members;
            set_members[s] := members + coalesce(meter_places[a], 0);
          end if;
        end if;
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
              union all
              select id, '' from holds where (set_scopes[s], set_keys[s]) = ('concurrency', 'all') and credential_id = set_credentials[s] and at_once
              union all
              select call_ids[call], '' from generate_subscripts(call_at_once, 1) call
              where (set_scopes[s], set_keys[s]) = ('concurrency', 'all') and call_at_once[call] and credentials_in[call_credentials[call]] = set_credentials[s]
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
            refusing := refusing || (j - allowance_from);
            fits := case when allowance_account[a] = locked[account] then allowance_free[a] else 0 end;
            -- Of several that are in the way the tightest is told: what fits into it fits into all of them.
            if subject is null or fits < allowance_left then
              allowance_left := fits; outcome := 'allowance_spent'; subject := j - allowance_from;
            end if;
          end if;
        end loop;
        if subject is not null then exit judged; end if;
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
          if (set_scopes[s], set_keys[s]) = ('concurrency', 'all') then
            call_at_once[i] := true;
            meter_places[call_credentials[i]] := coalesce(meter_places[call_credentials[i]], 0) + 1;
          else
            call_claims[i] := true;
            claim_calls := claim_calls || i;
            claim_asks := claim_asks || j;
          end if;
        end loop;
        for j in allowance_from .. ask_allowances_to[i] loop
          a := ask_allowances[j];
          allowance_free[a] := allowance_free[a] - call_amounts[i];
          if allowance_meters[a] = credentials_in[call_credentials[i]] then
            meter_held[call_credentials[i]] := coalesce(meter_held[call_credentials[i]], 0) + call_amounts[i];
          elsif allowance_meters[a] is not null then
            -- Of somebody else's.
            update credentials row set budget_held = row.budget_held + call_amounts[i] where row.id = allowance_meters[a];
          else
            has_kept := true;
          end if;
        end loop;
        account_free[account] := account_free[account] - call_amounts[i];
      end if;
    end judged;

    -- What the call takes of its windows; the tightest of them speaks in the answer's headers.
    for j in window_from .. ask_windows_to[i] loop
      w := ask_windows[j];
      if takes_request then
        if window_groups[w] = 'all' then meter_windows[call_credentials[i]] := w; end if;
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
    if outcome <> 'begun' then subject := null; holder := null; refusing := null; end if;
    window_from := ask_windows_to[i] + 1;
    set_from := ask_sets_to[i] + 1;
    allowance_from := ask_allowances_to[i] + 1;
  end loop;

  if coalesce(meter_windows, meter_places, meter_recounts) is not null or meter_held is not null then
    update credentials row set
      all_started_at = case when meter_windows[place] is null then row.all_started_at else window_started[meter_windows[place]] end,
      all_requests = case when meter_windows[place] is null then row.all_requests else window_requests[meter_windows[place]] end,
      all_tokens = case when meter_windows[place] is null then row.all_tokens else window_tokens[meter_windows[place]] end,
      calls_at_once = coalesce(meter_recounts[place], row.calls_at_once) + coalesce(meter_places[place], 0),
      budget_held = row.budget_held + coalesce(meter_held[place], 0)
    from unnest(credentials_in) with ordinality item (id, place)
    where row.id = any (array[item.id])
      and (meter_windows[place] is not null or meter_places[place] is not null or meter_recounts[place] is not null or meter_held[place] is not null);
  end if;

  if window_requests <> requests_before and has_groups then
    insert into group_windows as row (credential_id, limit_group, started_at, requests, tokens)
    select window_credentials[place], limit_group, window_started[place], window_requests[place], window_tokens[place]
    from unnest(window_groups) with ordinality item (limit_group, place)
    where window_requests[place] <> requests_before[place] and limit_group <> 'all'
    on conflict (credential_id, limit_group) do update
    set started_at = excluded.started_at, requests = excluded.requests, tokens = excluded.tokens;
  end if;

  if held_calls is null then return; end if;

  update accounts row set held = row.held + free_before[item.place] - account_free[item.place]
  from unnest(account_rows) with ordinality item (ctid, place)
  where row.ctid = item.ctid and free_before[item.place] <> account_free[item.place];

  insert into holds (id, account_id, credential_id, owner_id, operation, amount, terms, allowances, token_groups, tokens_estimated, claims, at_once, begun_at,
    asked_model, end_user, end_user_label, tags)
  select call_ids[i], accounts_in[call_accounts[i]], credentials_in[call_credentials[i]], owner_id_in, call_operations[i], call_amounts[i],
    call_terms[i], call_allowances[i]::uuid[], call_token_groups[i]::text[], call_tokens[i], call_claims[i] is not null, call_at_once[i] is not null, at,
    call_models[i], call_end_users[i], call_end_user_labels[i], call_tags[i]::text[]
  from unnest(held_calls) i;

  if has_kept and allowance_free <> allowance_before then
    insert into kept_periods as row (allowance_id, starts_at, amount, held)
    select id, allowance_starts[place], allowance_amounts[place], allowance_before[place] - allowance_free[place]
    from unnest(allowances_in) with ordinality item (id, place)
    where allowance_before[place] <> allowance_free[place] and allowance_meters[place] is null
    on conflict (allowance_id, starts_at) do update set held = row.held + excluded.held, amount = greatest(row.amount, excluded.amount);
  end if;

  if claim_calls is not null then
    insert into claims (credential_id, scope, key, call_id, fingerprint, keep_seconds, ends_with_owner)
    select set_credentials[ask_sets[j]], set_scopes[ask_sets[j]], set_keys[ask_sets[j]], call_ids[i], ask_fingerprints[j], ask_keep_seconds[j],
      ask_ends_with_owner[j]
    from unnest(claim_calls, claim_asks) item (i, j);
  end if;
end
$$;
