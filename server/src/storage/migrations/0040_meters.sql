-- What a credential has of its own stands in its row from now on (0038, docs/decisions/0048).
--
-- The tables of windows and periods get other names in the next migration. Functions use these names from now on, so that no statement that has begun by a
-- text of today finds a view in the place of a table.

-- Every call locks its account first, so no call has a row that we change and waits for one that we have. A call that waits for this lock goes on by its old text.
-- From here on no table is locked that somebody may have who waits for accounts: rows are changed, which readers do not wait for.
lock table accounts in access exclusive mode;

-- Calls at once that began before holds said so have a claim. Such a claim never outlives its hold.
with moved as (
  delete from claims using holds where claims.call_id = holds.id and claims.scope = 'concurrency' and claims.key = 'all'
  returning claims.call_id
)
update holds set at_once = true from moved where holds.id = moved.call_id and unsettled_at is null and not at_once;
update credentials row set calls_at_once = open.calls
from (select credential_id, count(*)::integer as calls from holds where at_once group by credential_id) open where row.id = open.credential_id;
-- By the time at which this transaction began, which is read once: then few windows are young, and PostgreSQL knows that they are.
update credentials row set all_started_at = started_at, all_requests = requests, all_tokens = tokens
from windows where limit_group = 'all' and credential_id = row.id and started_at > now() - interval '5 minutes';

-- Calls that go on by their old text would count where nobody looks any more. They are told what they would be told where an account is locked for too long,
-- and are sent again.
create function refuse_old_window() returns trigger
language plpgsql as $$
begin
  raise exception using errcode = 'lock_not_available', message = 'this window stands with its credential: send the call again';
end
$$;
create trigger windows_of_credentials before insert or update on windows
for each row when (new.limit_group = 'all') execute function refuse_old_window();

create view kept_periods as select allowance_id, starts_at, amount, charged, held from allowance_periods;
create view group_windows as select credential_id, limit_group, started_at, requests, tokens from windows where limit_group <> 'all';

-- Releases what calls held of allowances and charges them what they cost, each in the period that stands with a credential where the call began in that one, and else in
-- the last one that had begun by then: it was made, at the latest, for the call. One call may have several allowances: then there is one of everything else. Whoever asks
-- has the account's lock.
create or replace function settle_allowances(ids uuid[], begun timestamptz[], released bigint[], charges_in bigint[]) returns void
language plpgsql volatile as $$
begin
  if cardinality(ids) = 1 then
    update credentials row set budget_held = row.budget_held - released[1], budget_charged = row.budget_charged + charges_in[1]
    where row.budget_id = ids[1] and row.budget_starts_at <= begun[1] and row.budget_ends_at > begun[1];
    if found then return; end if;
    update kept_periods row set held = row.held - released[1], charged = row.charged + charges_in[1]
    where row.allowance_id = ids[1] and row.starts_at = (
      select starts_at from kept_periods where allowance_id = ids[1] and starts_at <= begun[1] order by starts_at desc limit 1
    );
    return;
  end if;

  with part as materialized (
    select item.id, own.id as meter, begun[call] as begun_at, released[call] as held, charges_in[call] as charge
    from unnest(ids) with ordinality item (id, place)
    cross join lateral (select case when cardinality(begun) = 1 then 1 else place end) one (call)
    left join lateral (
      select meter.id from credentials meter
      where meter.budget_id = item.id and meter.budget_starts_at <= begun[call] and meter.budget_ends_at > begun[call] limit 1
    ) own on true
  ), metered as (
    update credentials row set budget_held = row.budget_held - change.held, budget_charged = row.budget_charged + change.charge
    from (select meter, sum(held)::bigint as held, sum(charge)::bigint as charge from part where meter is not null group by meter) change
    where row.id = any (array[change.meter])
  )
  update kept_periods row set held = row.held - change.held, charged = row.charged + change.charge
  from (
    select part.id, period.starts_at, sum(part.held)::bigint as held, sum(part.charge)::bigint as charge
    from part cross join lateral (
      select starts_at from kept_periods where allowance_id = part.id and starts_at <= part.begun_at order by starts_at desc limit 1
    ) period
    where part.meter is null
    group by part.id, period.starts_at
  ) change
  where row.allowance_id = any (array[change.id]) and row.starts_at = any (array[change.starts_at]);
end
$$;

-- Puts the running period of a credential's own budget into the credential's row, so that a call changes one row for all that its credential has of its own.
-- What stood there before is kept with the others. Says whether anything was moved: not where it stands there, nor where the allowance can't stand there, because it
-- is not of the account, follows a budget of everybody, or stands with another credential.
create or replace function meter_budget(credential uuid, allowance uuid) returns boolean
language plpgsql volatile as $$
declare
  account uuid;
  own record;
  wanted record;
  running timestamptz;
  kept record;
begin
  select account_id into account from credentials where id = credential;
  perform 1 from accounts where id = account for no key update;
  select * into own from credentials where id = credential;
  select * into wanted from allowances where id = allowance and account_id = account and follows is null;
  if not found or wanted.credential_id <> credential then return false; end if;
  running := period_start(wanted.period, clock_timestamp());
  if own.budget_id = allowance and own.budget_starts_at = running then return false; end if;

  if own.budget_id is not null then
    insert into kept_periods (allowance_id, starts_at, amount, charged, held)
    values (own.budget_id, own.budget_starts_at, own.budget_amount, own.budget_charged, own.budget_held);
    if own.budget_id <> allowance then update allowances set credential_id = null where id = own.budget_id; end if;
  end if;
  delete from kept_periods where allowance_id = allowance and starts_at = running returning * into kept;
  update credentials set
    budget_id = allowance, budget_starts_at = running, budget_ceiling = wanted.amount,
    budget_ends_at = case wanted.period
      when 'day' then (running at time zone 'UTC' + interval '1 day') at time zone 'UTC'
      when 'week' then (running at time zone 'UTC' + interval '7 days') at time zone 'UTC'
      when 'month' then (running at time zone 'UTC' + interval '1 month') at time zone 'UTC'
      else 'infinity' end,
    budget_amount = coalesce(kept.amount, wanted.amount), budget_charged = coalesce(kept.charged, 0), budget_held = coalesce(kept.held, 0)
  where id = credential;
  if wanted.credential_id is null then update allowances set credential_id = credential where id = allowance; end if;
  return true;
end
$$;

-- Whether processes of this release may begin and end calls by their own statements. A later migration that changes what a call writes, or where, replaces it by one that
-- says no: then all calls are judged by functions, which it replaces too. It is a part of the plans that ask for it, and costs nothing.
create or replace function calls_may_fit() returns boolean
language sql stable parallel safe
return true;

-- Whether none of these ids has a hold or has ended. Volatile, so that it reads what is there now: the statement that asks may have waited for a lock since
-- it began.
create or replace function calls_are_new(ids uuid[], days date[]) returns boolean
language plpgsql volatile as $$
begin
  return not (exists (select from holds where id = any (ids)) or has_ended(ids, days));
end
$$;

-- Gives back what accounts hold for calls that do not begin after all, within the statement that took it: of those at the places `held` all but those at `kept`.
create or replace function give_back(accounts_in uuid[], amounts bigint[], held integer[], kept integer[]) returns void
language plpgsql volatile as $$
begin
  update accounts row set held = row.held - amounts[place]
  from unnest(give_back.held) place
  where row.id = any (array[accounts_in[place]]) and place <> all (coalesce(kept, '{}'));
end
$$;

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
    if window_groups[1] = 'all' then
      select array[all_started_at], array[row.all_requests], array[row.all_tokens] into window_started, window_requests, window_tokens
      from credentials row where id = window_credentials[1] and all_started_at + make_interval(secs => window_seconds[1]) > at;
    else
      select array[started_at], array[requests], array[tokens] into window_started, window_requests, window_tokens from group_windows
      where credential_id = window_credentials[1] and limit_group = window_groups[1]
        and started_at + make_interval(secs => window_seconds[1]) > at;
    end if;
    if not found then window_requests := array[0]; window_tokens := array[0]; end if;
  elsif cardinality(window_groups) > 1 then
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

  if cardinality(allowances_in) = 1 then
    select array[allowance.account_id], array[allowance.starts_at], array[coalesce(row.amount, allowance.amount)], array[row.meter],
      -- One that was lowered below what was spoken for stays lowered when some of that comes free.
      array[greatest(0, coalesce(least(row.amount, allowance.amount) - row.charged - row.held, allowance.amount))]
    into allowance_account, allowance_starts, allowance_amounts, allowance_meters, allowance_free
    -- One that follows a budget has the amount that the budget has now, whatever it was when the period began.
    from (
      select own.account_id, own.credential_id, coalesce(budget.amount, own.amount) as amount, budget.amount as followed, period_start(own.period, at) as starts_at
      from allowances own left join lateral (select amount from budgets where id = own.follows limit 1) budget on true where own.id = allowances_in[1]
    ) allowance
    left join lateral (
      select coalesce(allowance.followed, amount) as amount, charged, held, null::uuid as meter from kept_periods
      where allowance_id = allowances_in[1] and starts_at = allowance.starts_at
      union all
      select coalesce(allowance.followed, budget_amount), budget_charged, budget_held, id from credentials
      where id = allowance.credential_id and budget_id = allowances_in[1] and budget_starts_at = allowance.starts_at
      limit 1
    ) row on true;
  elsif cardinality(allowances_in) > 1 then
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

  if cardinality(set_keys) = 1 then
    if (set_scopes[1], set_keys[1]) = ('concurrency', 'all') then
      set_members := array[coalesce((select calls_at_once from credentials where id = set_credentials[1]), 0)];
    else
      set_members := array(
        select count(*)::integer from claims
        where credential_id = set_credentials[1] and scope = set_scopes[1] and key = set_keys[1]
          and (kept_until is null or kept_until > at)
      );
    end if;
  elsif cardinality(set_keys) > 1 then
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
    if cardinality(credentials_in) = 1 then
      w := meter_windows[1];
      update credentials row set
        all_started_at = case when w is null then row.all_started_at else window_started[w] end,
        all_requests = case when w is null then row.all_requests else window_requests[w] end,
        all_tokens = case when w is null then row.all_tokens else window_tokens[w] end,
        calls_at_once = coalesce(meter_recounts[1], row.calls_at_once) + coalesce(meter_places[1], 0),
        budget_held = row.budget_held + coalesce(meter_held[1], 0)
      where row.id = credentials_in[1];
    else
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

  if cardinality(locked) = 1 then
    update accounts set held = held + free_before[1] - account_free[1] where ctid = account_rows[1];
  else
    update accounts row set held = row.held + free_before[item.place] - account_free[item.place]
    from unnest(account_rows) with ordinality item (ctid, place)
    where row.ctid = item.ctid and free_before[item.place] <> account_free[item.place];
  end if;

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
  has_allowances boolean := false; has_meters boolean := false; has_groups boolean := false; has_claims boolean := false;
  has_entries boolean := false; has_late boolean := false; has_ended_before boolean := false;
  claims_kept tid[];
  claims_ended tid[];
  asks constant boolean := ask_groups <> '{}';
  told double precision[];
  account integer; freed bigint; difference bigint; token_group text;
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
    if has_allowances then
      perform settle_allowances(own.allowances, array[own.begun_at], array[own.amount], array[call_charges[1]]);
    end if;
    difference := greatest(0, call_input_tokens[1] + call_output_tokens[1] + call_cache_read_tokens[1] + call_cache_write_tokens[1] - own.tokens_moved)
      - (own.tokens_estimated - own.tokens_moved);
    if has_meters then
      update credentials row set
        calls_at_once = row.calls_at_once - own.at_once::integer,
        all_tokens = case when 'all' = any (own.token_groups) and row.all_started_at <= coalesce(own.reserved_at, own.begun_at)
          then greatest(0, row.all_tokens + difference) else row.all_tokens end
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
          then greatest(0, row.tokens + difference) else row.tokens end
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
              then greatest(0, call_input_tokens[hold.ordinality] + call_output_tokens[hold.ordinality]
                + call_cache_read_tokens[hold.ordinality] + call_cache_write_tokens[hold.ordinality] - hold.tokens_moved)
                - (hold.tokens_estimated - hold.tokens_moved)
              else 0 end)::bigint as difference
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
              then greatest(0, call_input_tokens[hold.ordinality] + call_output_tokens[hold.ordinality]
                + call_cache_read_tokens[hold.ordinality] + call_cache_write_tokens[hold.ordinality] - hold.tokens_moved)
                - (hold.tokens_estimated - hold.tokens_moved)
              else 0 end)::bigint as difference
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

-- EXTEND: raises what running calls hold, for a batch of calls. All or none for each call, over its account, every allowance that it
-- counts against and every window that counts its tokens: a refusal for one reason consumes nothing of the others.
--
-- A call says what it is to hold, and to have reserved, in all. That names the step: the same total again, or a smaller one that comes
-- late, adds nothing and answers as if it had been granted now. Only the process that runs the call may extend it: a call that has
-- ended, or that is taken for an orphan, grows no more.
create or replace function extend_calls(
  owner_id_in uuid,
  accounts_in uuid[],
  call_ids uuid[],
  call_accounts uuid[],
  call_amounts bigint[],
  call_tokens bigint[],
  -- The windows that count tokens, flattened: ask_windows_to[i] is where those of call i end.
  ask_windows_to integer[],
  ask_groups text[],
  ask_seconds integer[],
  ask_token_limits bigint[]
) returns table (
  outcome text,
  -- What the call holds and has reserved after it, whatever the outcome; 0 where there is no such call.
  now_held bigint,
  now_reserved bigint,
  -- Money of the account that is free after the call's turn.
  free bigint,
  -- Which allowance refused it, and what is left of that.
  spent_allowance uuid,
  allowance_left bigint,
  -- Which window refused it, what is left of that, and when it ends.
  spent_group text,
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
  own holds;
  more bigint;
  more_tokens bigint;
  -- The windows of the call that stand, each at its place; null where none does.
  window_started timestamptz[];
  window_requests integer[];
  window_tokens bigint[];
  standing record;
  has_turned boolean;
  account integer; one uuid; fits bigint; window_from integer := 1;
begin
  -- Who waits for a lock is given the row as it is then, and sees of everything else what was there before it waited: as in BEGIN,
  -- this statement reads what it locks and nothing else.
  if cardinality(accounts_in) = 1 then
    select array[id], array[ctid], array[credited + debt - charged - held],
      array[case when not active then 'account_inactive' when debt > 0 then 'account_suspended' end]
    into locked, account_rows, account_free, account_state
    from accounts where id = accounts_in[1] for no key update;
  else
    select array_agg(id), array_agg(ctid), array_agg(credited + debt - charged - held),
      array_agg(case when not active then 'account_inactive' when debt > 0 then 'account_suspended' end)
    into locked, account_rows, account_free, account_state
    from (select ctid, * from accounts where id = any (accounts_in) order by id for no key update) row;
  end if;
  at := clock_timestamp();
  judged_at := at;
  free_before := account_free;

  -- Judged in the order of arrival, each against what the ones before it have left.
  for i in 1 .. calls loop
    account := array_position(locked, call_accounts[i]);
    outcome := 'extended';
    spent_allowance := null; allowance_left := null; spent_group := null; tokens_left := null; tokens_reset_at := null;
    select * into own from holds where id = call_ids[i];
    more := greatest(0, call_amounts[i] - own.amount);
    more_tokens := greatest(0, call_tokens[i] - own.tokens_estimated);
    has_turned := false;

    <<judged>>
    begin
      if own.id is null then
        outcome := 'ended'; exit judged;
      elsif account is null or own.account_id <> locked[account] then
        outcome := 'misplaced'; own := null; exit judged;
      elsif own.owner_id is distinct from owner_id_in or own.unsettled_at is not null then
        outcome := 'disowned'; exit judged;
      elsif more = 0 and more_tokens = 0 then
        exit judged;
      elsif account_state[account] is not null then
        outcome := account_state[account]; exit judged;
      elsif not exists (select from credentials where id = own.credential_id and account_id = own.account_id and active) then
        outcome := 'credential_inactive'; exit judged;
      end if;

      if more_tokens > 0 then
        for j in window_from .. ask_windows_to[i] loop
          if ask_groups[j] = 'all' then
            select all_started_at as started_at, all_requests as requests, all_tokens as tokens into standing from credentials
            where id = own.credential_id and all_started_at + make_interval(secs => ask_seconds[j]) > at;
          else
            select started_at, requests, tokens into standing from group_windows
            where credential_id = own.credential_id and limit_group = ask_groups[j] and started_at + make_interval(secs => ask_seconds[j]) > at;
          end if;
          window_started[j] := coalesce(standing.started_at, at);
          window_requests[j] := coalesce(standing.requests, 0);
          window_tokens[j] := coalesce(standing.tokens, 0);
          -- The window in which the call has reserved until now is over.
          has_turned := has_turned or window_started[j] > coalesce(own.reserved_at, own.begun_at);
          if window_tokens[j] + more_tokens > ask_token_limits[j] then
            outcome := 'tokens_spent';
            spent_group := ask_groups[j];
            tokens_left := greatest(0, ask_token_limits[j] - window_tokens[j]);
            tokens_reset_at := window_started[j] + make_interval(secs => ask_seconds[j]);
            exit judged;
          end if;
        end loop;
      end if;

      if more > 0 then
        -- In the period that the call was begun in, where it is charged too.
        foreach one in array own.allowances loop
          fits := (
            select greatest(0, coalesce(least(row.amount, allowance.amount) - row.charged - row.held, allowance.amount))
            from (
              select item.id, item.credential_id, coalesce(budget.amount, item.amount) as amount, budget.amount as followed,
                period_start(item.period, own.begun_at) as starts_at
              from allowances item left join lateral (select amount from budgets where id = item.follows limit 1) budget on true where item.id = one
            ) allowance
            left join lateral (
              select coalesce(allowance.followed, amount) as amount, charged, held from kept_periods
              where allowance_id = allowance.id and starts_at = allowance.starts_at
              union all
              select coalesce(allowance.followed, budget_amount), budget_charged, budget_held from credentials meter
              where meter.id = allowance.credential_id and budget_id = allowance.id and budget_starts_at = allowance.starts_at
              limit 1
            ) row on true
          );
          -- Of several that are in the way the tightest is told, as in BEGIN.
          if more > coalesce(fits, 0) and (spent_allowance is null or coalesce(fits, 0) < allowance_left) then
            outcome := 'allowance_spent'; spent_allowance := one; allowance_left := coalesce(fits, 0);
          end if;
        end loop;
        if spent_allowance is not null then exit judged; end if;
        if more > account_free[account] then
          outcome := 'money_spent'; exit judged;
        end if;
        account_free[account] := account_free[account] - more;
        foreach one in array own.allowances loop
          update credentials meter set budget_held = meter.budget_held + more
          from allowances item
          where item.id = one and meter.id = item.credential_id and meter.budget_id = one and meter.budget_starts_at = period_start(item.period, own.begun_at);
          continue when found;
          insert into kept_periods as row (allowance_id, starts_at, amount, held)
          select item.id, period_start(item.period, own.begun_at), coalesce(budget.amount, before.amount, item.amount), more
          from allowances item left join lateral (select amount from budgets where id = item.follows limit 1) budget on true
          left join lateral (
            select amount from kept_periods where allowance_id = item.id and starts_at = period_start(item.period, own.begun_at) limit 1
          ) before on true
          where item.id = one
          on conflict (allowance_id, starts_at) do update set held = row.held + excluded.held, amount = greatest(row.amount, excluded.amount);
        end loop;
      end if;

      if more_tokens > 0 then
        for j in window_from .. ask_windows_to[i] loop
          if ask_groups[j] = 'all' then
            update credentials set all_started_at = window_started[j], all_requests = window_requests[j], all_tokens = window_tokens[j] + more_tokens
            where id = own.credential_id;
            continue;
          end if;
          insert into group_windows (credential_id, limit_group, started_at, requests, tokens)
          values (own.credential_id, ask_groups[j], window_started[j], window_requests[j], window_tokens[j] + more_tokens)
          on conflict (credential_id, limit_group) do update
          set started_at = excluded.started_at, requests = excluded.requests, tokens = excluded.tokens;
        end loop;
      end if;

      -- What was reserved in windows that are over stays used there: END gives back in the newest one alone.
      if has_turned then
        own.tokens_moved := own.tokens_estimated;
        own.reserved_at := at;
      end if;
      own.amount := own.amount + more;
      own.tokens_estimated := own.tokens_estimated + more_tokens;
      update holds set amount = own.amount, tokens_estimated = own.tokens_estimated, tokens_moved = own.tokens_moved, reserved_at = own.reserved_at
      where id = own.id;
    end judged;

    now_held := coalesce(own.amount, 0);
    now_reserved := coalesce(own.tokens_estimated, 0);
    free := account_free[account];
    window_from := ask_windows_to[i] + 1;
    return next;
  end loop;

  if account_free = free_before then return; end if;
  if cardinality(locked) = 1 then
    update accounts set held = held + free_before[1] - account_free[1] where ctid = account_rows[1];
  else
    update accounts row set held = row.held + free_before[item.place] - account_free[item.place]
    from unnest(account_rows) with ordinality item (ctid, place)
    where row.ctid = item.ctid and free_before[item.place] <> account_free[item.place];
  end if;
end
$$;

-- Lowering an allowance takes effect as what is spoken for already, where that is more.
create or replace function change_allowance(allowance uuid, new_amount bigint) returns void
language plpgsql volatile as $$
declare
  running timestamptz;
  meter uuid;
begin
  perform 1 from accounts where id = (select account_id from allowances where id = allowance) for no key update;
  update allowances set amount = new_amount where id = allowance
  returning period_start(period, clock_timestamp()), credential_id into running, meter;
  update kept_periods set amount = greatest(new_amount, charged + held) where allowance_id = allowance and starts_at = running;
  update credentials set
    budget_ceiling = new_amount,
    budget_amount = case when budget_starts_at = running then greatest(new_amount, budget_charged + budget_held) else budget_amount end
  where id = meter and budget_id = allowance;
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
  update kept_periods row set charged = row.charged - given
  from allowances allowance
  where allowance.id = any (charge.allowances) and row.allowance_id = allowance.id
    and row.starts_at = period_start(allowance.period, charge.begun_at);
  update credentials row set budget_charged = row.budget_charged - given
  from allowances allowance
  where allowance.id = any (charge.allowances) and row.id = allowance.credential_id and row.budget_id = allowance.id
    and row.budget_starts_at = period_start(allowance.period, charge.begun_at);
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

-- Marks calls that nobody runs any more: what they hold stays held, and their place among the calls at once is free. What has been given to its
-- task is nobody's orphan.
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
  with orphans as (
    select holds.id, holds.at_once from holds
    where holds.id = any (ids) and unsettled_at is null
      and case
        when of is null then owner_id is not null and not exists (select from owners where owners.id = holds.owner_id and lease_until >= at)
        else owner_id = of
      end
  ), marked as (
    update holds set unsettled_at = at, at_once = false
    from orphans where holds.id = orphans.id
    returning holds.id, holds.account_id, holds.owner_id, holds.credential_id, orphans.at_once as had_place
  ), freed as (
    delete from claims using marked where claims.call_id = marked.id and claims.ends_with_owner
  ), counted as (
    update credentials row set calls_at_once = row.calls_at_once - left_by.places
    from (select credential_id, count(*)::integer as places from marked where had_place group by credential_id order by credential_id) left_by
    where row.id = left_by.credential_id
  )
  select marked.id, marked.account_id, marked.owner_id from marked;
end
$$;
