-- Who runs the open calls. A process renews its lease every few seconds; the holds of one whose lease has ended are
-- orphans: nobody knows any more whether their upstream was asked. Their money stays held until evidence, an operator or
-- the deadline resolves them.

create table owners (
  id uuid primary key,
  lease_until timestamptz not null,
  -- By when it is to be renewed: half of the lease. Who is later could not reach PostgreSQL for a while.
  renew_by timestamptz not null,
  -- Since when it was always renewed by then.
  held_since timestamptz not null
) with (fillfactor = 50);

-- Gives PostgreSQL's clock as well, by which ids are made.
create function renew_lease(owner uuid, seconds double precision, out at timestamptz, out since timestamptz)
language plpgsql volatile as $$
begin
  at := clock_timestamp();
  insert into owners as row (id, lease_until, renew_by, held_since)
  values (owner, at + make_interval(secs => seconds), at + make_interval(secs => seconds / 2), at)
  on conflict (id) do update set
    lease_until = excluded.lease_until,
    renew_by = excluded.renew_by,
    held_since = case when row.renew_by >= at then row.held_since else at end
  returning held_since into since;
end
$$;

-- Marks calls as unsettled, each once however many try at once: under its account's lock, by a statement that looks again
-- whether the call is still open and still nobody's. Slots that end with a process are free again; nothing else is.
-- `of` is the process that disowns calls of its own; null where their owners must be dead.
create function mark_unsettled(ids uuid[], of uuid) returns table (id uuid, account_id uuid, owner_id uuid)
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
        when of is null then not exists (select from owners where owners.id = holds.owner_id and lease_until >= at)
        else owner_id = of
      end
    returning holds.id, holds.account_id, holds.owner_id
  ), freed as (
    delete from claims using marked where claims.call_id = marked.id and claims.ends_with_owner
  )
  select marked.id, marked.account_id, marked.owner_id from marked;
end
$$;

-- Finds calls of processes whose lease has ended, at most so many, and marks them as unsettled. After an outage leases have
-- ended, or some have: nobody is swept until every process that lives had the time to renew. So whoever sweeps must itself
-- have renewed its lease in time for so long, and PostgreSQL must be up for so long. A lease of the sweeper's that has not
-- ended would not do: in an outage shorter than a lease, those end that were renewed a little earlier.
create function sweep_orphans(sweeper uuid, grace_seconds double precision, most integer) returns table (id uuid, account_id uuid, owner_id uuid)
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
    return;
  end if;
  return query select orphan.id, orphan.account_id, orphan.owner_id
  from mark_unsettled(array(
    select holds.id from owners join holds on holds.owner_id = owners.id
    where owners.lease_until < at and unsettled_at is null limit most
  ), null) orphan;
end
$$;

-- Forgets processes that ended long ago and have nothing open. One that only slept, and died after it had begun calls and
-- before it renewed, is known again as one whose lease has ended: nobody would find its calls otherwise.
create function forget_owners(ended_before timestamptz) returns void
language sql volatile as $$
  delete from owners where lease_until < ended_before and not exists (select from holds where holds.owner_id = owners.id);
  insert into owners (id, lease_until, renew_by, held_since)
  select distinct owner_id, clock_timestamp(), clock_timestamp(), clock_timestamp() from holds
  where unsettled_at is null and not exists (select from owners where owners.id = holds.owner_id)
  on conflict (id) do nothing
$$;

-- Ends calls that are unsettled, of accounts that are locked, without evidence of what they used. An amount of null voids.
create function end_unsettled(ids uuid[], accounts_of uuid[], amounts bigint[], forgiven boolean)
returns table (id uuid, account_id uuid, outcome text, charged bigint, overrun bigint)
language sql volatile as $$
  select item.id, item.account_id, ended.outcome, ended.charged, ended.overrun
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
  join unnest(ids, accounts_of) with ordinality item (id, account_id, place) using (place)
$$;

-- Ends one call that is unsettled, by what an operator knows of it: charges that much, at most what was held, or voids it
-- where the amount is null. Answers no row where the call is not unsettled: somebody runs it, or it has ended.
create function resolve_call(call_id uuid, amount bigint) returns table (outcome text, charged bigint, overrun bigint)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  account uuid;
begin
  select account_id into account from holds where id = call_id;
  perform 1 from accounts where id = account for no key update;
  perform 1 from holds where id = call_id and unsettled_at is not null;
  if not found then return; end if;
  return query select ended.outcome, ended.charged, ended.overrun
  from end_unsettled(array[call_id], array[account], array[amount], false) ended;
end
$$;

-- Ends calls that have been unsettled for too long, at most so many: voided, their bound the operator's loss.
create function resolve_overdue(seconds double precision, most integer) returns table (id uuid, account_id uuid, overrun bigint)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  due uuid[];
  ids uuid[];
  accounts_of uuid[];
  amounts bigint[];
begin
  due := array(select id from holds where unsettled_at < clock_timestamp() - make_interval(secs => seconds) order by unsettled_at limit most);
  perform 1 from accounts
  where accounts.id in (select account_id from holds where id = any (due))
  order by accounts.id for no key update;
  -- Some may have been settled meanwhile.
  select array_agg(id), array_agg(account_id), array_agg(amount) into ids, accounts_of, amounts from holds where id = any (due);
  if ids is null then return; end if;
  return query select ended.id, ended.account_id, ended.overrun from end_unsettled(ids, accounts_of, amounts, true) ended;
end
$$;
