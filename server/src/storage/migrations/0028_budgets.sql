-- Ceilings where people want them: budgets of workspaces, members, tags and end users beside those of keys. Each is an allowance, which BEGIN
-- holds and EXTEND grows.

-- Every call locks its account first. So nobody has one of the tables and waits for another that we have.
lock table accounts in access exclusive mode;

alter table allowances drop constraint allowances_period_check;
alter table allowances add constraint allowances_period_check check (period in ('day', 'week', 'month', 'total'));
-- The budget whose amount it has, which is read there and not here; null for that of a key or of a grant. Where there is no such budget, it has
-- its own.
alter table allowances add column follows uuid;

-- What an account's spend may be in a period: all of it, that of a member, of calls with a tag, of an end user. Its id follows from the rest.
-- A budget of one subject has an allowance of the same id; one of every value of a tag, or of every end user, has one for each that is met.
create table budgets (
  id uuid primary key,
  account_id uuid not null references accounts,
  kind text not null check (kind in ('workspace', 'member', 'tag', 'end_user')),
  -- Nothing for a workspace, the id of a person or one of an address of the workspace, name=value or name=* of a tag, the id of an end user or *.
  subject text not null check (length(subject) <= 200),
  -- The subject as people know it.
  label text not null check (length(label) <= 200),
  period text not null check (period in ('day', 'week', 'month', 'total')),
  amount bigint not null check (amount >= 0),
  set_at timestamptz not null default clock_timestamp(),
  constraint one_of_a_subject unique (account_id, kind, subject, period),
  constraint a_workspace_needs_no_name check ((kind = 'workspace') = (subject = ''))
);

-- Tags that a credential's calls have whatever the request says, as name=value.
alter table api_keys add column fixed_tags text[];
alter table grants add column fixed_tags text[];
-- Whose key it is. It outlives the membership, so that the member's budget goes on bounding the key, and bounds it again when the same person
-- comes back: the membership, the person, and the address by which a member is known before somebody signs up with it.
alter table api_keys add column member_id uuid, add column member_person uuid, add column member_email text;
create index api_keys_unclaimed on api_keys (member_email) where member_email is not null and member_person is null;
-- Budgets that it had before, of which there is one for a period: set again, they go on counting.
alter table api_keys add column former_allowances uuid[] not null default '{}';

-- For whom callers make their calls, as far as they say so. Of what they said there is a hash, in the id, and a short label.
create table end_users (
  account_id uuid not null references accounts,
  id uuid not null,
  label text not null check (length(label) between 1 and 60),
  -- To the day or so.
  seen_at timestamptz not null,
  -- Until when it can have been one of those for whom there was no place; null where it never was.
  late_at timestamptz,
  primary key (account_id, id)
);
create index end_users_by_last_seen on end_users (seen_at);

-- How many an account has, so that there is a bound.
create table end_user_counts (
  account_id uuid primary key references accounts,
  users integer not null check (users >= 0),
  -- Whether there ever was no place for one.
  turned_away boolean not null default false
);

-- What people were told of a budget last: per cent of the amount, in which period. It changes in the transaction of the letters.
create table budget_notices (
  allowance_id uuid primary key references allowances,
  starts_at timestamptz not null,
  -- 0 for nothing in this period, and nothing of those before it.
  level smallint not null check (level in (0, 50, 80, 100))
);

-- What is used already when notices begin is no news.
insert into budget_notices (allowance_id, starts_at, level)
select allowance.id, period_start(allowance.period, clock_timestamp()), case
  when row.charged * 100::numeric > allowance.amount * 99::numeric then 100
  when row.charged * 100::numeric >= allowance.amount * 80::numeric then 80
  when row.charged * 100::numeric >= allowance.amount * 50::numeric then 50
  else 0 end
from api_keys key join allowances allowance on allowance.id = key.allowance_id
left join allowance_periods row on row.allowance_id = allowance.id and row.starts_at = period_start(allowance.period, clock_timestamp())
on conflict do nothing;

-- Accounts whose people were told that the balance is low, and have not been above it since.
create table balance_notices (
  account_id uuid primary key references accounts,
  told_at timestamptz not null default clock_timestamp()
);

-- The same of balances. The first look forgets those that are above what counts as low.
insert into balance_notices (account_id) select live_account_id from workspaces;

-- Those with a budget, of which somebody may have to be told.
create index api_keys_with_budget on api_keys (id) where allowance_id is not null and revoked_at is null;

-- Which ceilings a process holds calls against: see renew_lease_knowing.
alter table owners add column knows smallint not null default 0;

-- Stable, as date_trunc is: declared immutable it would not be inlined.
create or replace function period_start(period text, at timestamptz) returns timestamptz
language sql stable parallel safe
return case period
  when 'day' then date_trunc('day', at, 'UTC')
  when 'week' then date_trunc('week', at, 'UTC')
  when 'month' then date_trunc('month', at, 'UTC')
  else timestamptz '2000-01-01 00:00:00+00'
end;

-- Makes the allowances of those who have a budget because everybody has one, each when it is met for the first time: `ids` are theirs, and
-- `budgets_in` what they follow; null for one that is only looked for. Who comes second finds it made. Gives those that there are: where a
-- budget was removed meanwhile, there may be none. It waits for no account: the amount is that of the budget, whenever it is asked for.
create or replace function make_allowances(ids uuid[], budgets_in uuid[]) returns setof uuid
language plpgsql volatile
set lock_timeout = '2s'
as $$
begin
  insert into allowances (id, account_id, period, amount, follows)
  select item.id, budget.account_id, budget.period, budget.amount, budget.id
  from unnest(ids, budgets_in) item (id, budget_id) join budgets budget on budget.id = item.budget_id
  order by item.id
  on conflict (id) do nothing;
  return query select id from allowances where id = any (ids);
end
$$;

-- Notes that accounts have end users, and that they were seen; no end user stands in it twice. Known is false where the account has as many as it
-- may and this is none of them. One who gets a place when others have been turned away may have spent as one of those before: late_at says
-- until when that can have been.
create or replace function know_end_users(accounts_in uuid[], end_users_in uuid[], labels text[], most integer)
returns table (known boolean, late_at timestamptz)
language plpgsql volatile
set lock_timeout = '2s'
as $$
declare
  place integer; is_known boolean; late timestamptz;
  answers_known boolean[] := array_fill(false, array[cardinality(end_users_in)]);
  answers_late timestamptz[] := array_fill(null::timestamptz, array[cardinality(end_users_in)]);
begin
  -- In one order, so that two batches do not wait for each other.
  for place in select item.place from unnest(accounts_in, end_users_in) with ordinality item (account, id, place) order by account, id loop
    update end_users row set seen_at = clock_timestamp() where account_id = accounts_in[place] and id = end_users_in[place]
    returning row.late_at into late;
    is_known := found;
    if is_known then
      answers_known[place] := true; answers_late[place] := late;
      continue;
    end if;
    -- New ones of an account come one after the other, so that none is one too many.
    insert into end_user_counts (account_id, users) values (accounts_in[place], 0) on conflict do nothing;
    perform 1 from end_user_counts where account_id = accounts_in[place] for no key update;
    insert into end_users as row (account_id, id, label, seen_at, late_at)
    select account_id, end_users_in[place], labels[place], clock_timestamp(),
      -- A process may take it for one of the others for a minute more.
      case when turned_away then clock_timestamp() + interval '2 minutes' end
    from end_user_counts where account_id = accounts_in[place] and users < most
    on conflict do nothing returning row.late_at into late;
    is_known := found;
    if is_known then
      update end_user_counts set users = users + 1 where account_id = accounts_in[place];
    else
      select row.late_at into late from end_users row where row.account_id = accounts_in[place] and row.id = end_users_in[place];
      is_known := found;
      if not is_known then
        update end_user_counts set turned_away = true where account_id = accounts_in[place] and not turned_away;
      end if;
    end if;
    answers_known[place] := is_known; answers_late[place] := late;
  end loop;
  return query select * from unnest(answers_known, answers_late);
end
$$;

-- Forgets end users that nobody has seen for so long, at most so many. What they have spent stays counted: an allowance is not forgotten.
create or replace function prune_end_users(older_than_days integer, most integer) returns integer
language plpgsql volatile as $$
declare
  pruned integer;
begin
  -- One at a time, so that two do not wait for each other's accounts.
  if not pg_try_advisory_xact_lock(hashtext('farebox end users')) then return 0; end if;
  with old as (
    select account_id, id from end_users where seen_at < clock_timestamp() - make_interval(days => older_than_days)
    order by seen_at limit most for update skip locked
  ), gone as (
    delete from end_users using old where end_users.account_id = old.account_id and end_users.id = old.id returning end_users.account_id
  ), sums as materialized (
    select account_id, count(*)::integer as users from gone group by account_id
  ), counted as (
    update end_user_counts set users = greatest(0, end_user_counts.users - sums.users) from sums
    where end_user_counts.account_id = sums.account_id returning sums.users
  )
  select coalesce(sum(users), 0) into pruned from counted;
  return pruned;
end
$$;

-- Gives PostgreSQL's clock as well, by which ids are made. `knows` says which ceilings the process holds calls against: 1 for budgets of
-- workspaces, members, tags and end users beside those of keys.
create or replace function renew_lease_knowing(owner uuid, seconds double precision, knows_in integer, out at timestamptz, out since timestamptz)
language plpgsql volatile as $$
begin
  at := clock_timestamp();
  insert into owners as row (id, lease_until, renew_by, held_since, knows)
  values (owner, at + make_interval(secs => seconds), at + make_interval(secs => seconds / 2), at, knows_in)
  on conflict (id) do update set
    lease_until = excluded.lease_until,
    renew_by = excluded.renew_by,
    held_since = case when row.renew_by >= at then row.held_since else at end,
    knows = excluded.knows
  returning held_since into since;
end
$$;

-- For processes of releases that know budgets of keys alone. They may run while there are no others; whoever sets the first one waits until
-- none of them lives.
create or replace function renew_lease(owner uuid, seconds double precision, out at timestamptz, out since timestamptz)
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock_shared(hashtext('farebox budgets'));
  if exists (select from budgets) then
    raise exception 'there are budgets that this release of the program does not know: run a newer one, or remove them with farebox budgets remove';
  end if;
  select lease.at, lease.since into at, since from renew_lease_knowing(owner, seconds, 0) lease;
end
$$;

-- Refuses where a process still runs that would not hold calls against the budget which is about to be set. None can start until this
-- transaction has ended.
create or replace function require_budgets_known() returns void
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtext('farebox budgets'));
  if exists (select from owners where knows < 1 and lease_until > clock_timestamp()) then
    raise exception using errcode = 'FB001', message = 'a process of the release before is still running';
  end if;
end
$$;

-- It says more from now on.
drop function begin_attributed_calls;

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
    -- One that follows a budget has the amount that the budget has now, whatever it was when the period began.
    from (
      select own.account_id, coalesce(budget.amount, own.amount) as amount, budget.amount as followed, period_start(own.period, at) as starts_at
      from allowances own left join lateral (select amount from budgets where id = own.follows limit 1) budget on true where own.id = allowances_in[1]
    ) allowance
    left join lateral (
      select coalesce(allowance.followed, amount) as amount, charged, held from allowance_periods
      where allowance_id = allowances_in[1] and starts_at = allowance.starts_at limit 1
    ) row on true;
  elsif cardinality(allowances_in) > 1 then
    select array_agg(allowance.account_id), array_agg(allowance.starts_at), array_agg(coalesce(row.amount, allowance.amount)),
      array_agg(greatest(0, coalesce(least(row.amount, allowance.amount) - row.charged - row.held, allowance.amount)))
    into allowance_account, allowance_starts, allowance_amounts, allowance_free
    from unnest(allowances_in) item (id)
    left join lateral (
      select own.account_id, coalesce(budget.amount, own.amount) as amount, budget.amount as followed, period_start(own.period, at) as starts_at
      from allowances own left join lateral (select amount from budgets where id = own.follows limit 1) budget on true where own.id = item.id limit 1
    ) allowance on true
    left join lateral (
      select coalesce(allowance.followed, amount) as amount, charged, held from allowance_periods
      where allowance_id = item.id and starts_at = allowance.starts_at limit 1
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
    if outcome <> 'begun' then subject := null; holder := null; refusing := null; end if;
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
  -- Nobody who calls this knows budgets but those of keys. None of them lives when others are set; one that slept meanwhile may come back.
  if true = any (call_holds) and exists (select from budgets where account_id = any (accounts_in)) then
    raise exception 'there are budgets that this release of the program does not know: run a newer one';
  end if;
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
          select started_at, requests, tokens into standing from windows
          where credential_id = own.credential_id and limit_group = ask_groups[j] and started_at + make_interval(secs => ask_seconds[j]) > at;
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
              select item.id, coalesce(budget.amount, item.amount) as amount, budget.amount as followed, period_start(item.period, own.begun_at) as starts_at
              from allowances item left join lateral (select amount from budgets where id = item.follows limit 1) budget on true where item.id = one
            ) allowance
            left join lateral (
              select coalesce(allowance.followed, amount) as amount, charged, held from allowance_periods
              where allowance_id = allowance.id and starts_at = allowance.starts_at limit 1
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
          insert into allowance_periods as row (allowance_id, starts_at, amount, held)
          select item.id, period_start(item.period, own.begun_at), coalesce(budget.amount, before.amount, item.amount), more
          from allowances item left join lateral (select amount from budgets where id = item.follows limit 1) budget on true
          left join lateral (
            select amount from allowance_periods where allowance_id = item.id and starts_at = period_start(item.period, own.begun_at) limit 1
          ) before on true
          where item.id = one
          on conflict (allowance_id, starts_at) do update set held = row.held + excluded.held, amount = greatest(row.amount, excluded.amount);
        end loop;
      end if;

      if more_tokens > 0 then
        for j in window_from .. ask_windows_to[i] loop
          insert into windows (credential_id, limit_group, started_at, requests, tokens)
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
