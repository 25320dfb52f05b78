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
  select array_agg(id), array_agg(ctid), array_agg(credited + debt - charged - held),
    array_agg(case when not active then 'account_inactive' when debt > 0 then 'account_suspended' end)
  into locked, account_rows, account_free, account_state
  from (select ctid, * from accounts where id = any (accounts_in) order by id for no key update) row;
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
  update accounts row set held = row.held + free_before[item.place] - account_free[item.place]
  from unnest(account_rows) with ordinality item (ctid, place)
  where row.ctid = item.ctid and free_before[item.place] <> account_free[item.place];
end
$$;
