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
