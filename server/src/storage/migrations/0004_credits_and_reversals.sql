-- What changes an account's money beside calls. Each verb has an id and happens once: the same id again answers as the
-- first time. Each locks the account before it reads anything of it.

-- Applies a change to the sums of a locked account; `cash` is the part of the credit that is paid money. Whatever is free then pays debt first, and promotional credit is
-- never more than what the account itself has and has not spent: what paid debt is gone. Answers by how much promo and
-- debt changed.
create function change_account(account uuid, credit bigint, cash bigint, charge bigint, grant_promo bigint, new_debt bigint,
  out promo_change bigint, out debt_change bigint)
language plpgsql volatile as $$
declare
  before accounts%rowtype;
  free bigint;
  paid bigint;
begin
  select * into strict before from accounts where id = account;
  free := before.credited + credit + before.debt + new_debt - before.charged - charge - before.held;
  paid := least(before.debt + new_debt, free);
  promo_change := least(before.promo + grant_promo, greatest(0, before.credited + credit - before.charged - charge)) - before.promo;
  debt_change := new_debt - paid;
  update accounts row set
    credited = row.credited + credit,
    charged = row.charged + charge,
    promo = row.promo + promo_change,
    lapsed = least(row.lapsed, row.promo + promo_change),
    debt = row.debt + debt_change
  where row.id = account;
  -- By itself: what hangs on the paid total hears of it only when it changes.
  if cash <> 0 then update accounts row set paid = row.paid + cash where row.id = account; end if;
end
$$;

-- Spreads what calls have spent of a locked account's promotional credit over its grants: those that expire first are
-- spent first.
create function count_promotions(account uuid) returns void
language sql volatile as $$
  update promotions row set remaining = row.remaining - spent.amount
  from (
    select id, least(remaining, greatest(0, total - still_there - before_it)) as amount
    from (
      select id, remaining, sum(remaining) over () as total,
        sum(remaining) over (order by expires_at, id) - remaining as before_it
      from promotions where account_id = account and remaining > 0
    ) grants
    cross join (select promo - lapsed as still_there from accounts where id = account) left_of_it
  ) spent
  where row.id = spent.id and spent.amount > 0
$$;

-- Adds money, once for each id. Debt is paid first.
create function credit_account(entry_id uuid, account uuid, entry_kind text, credit bigint, expires timestamptz default 'infinity') returns boolean
language plpgsql volatile as $$
declare
  is_promotion constant boolean := entry_kind = 'promotion';
  change record;
begin
  if credit <= 0 then raise exception 'a credit must be positive'; end if;
  if entry_kind not in ('payment', 'promotion') then raise exception '% is no credit', entry_kind; end if;
  perform 1 from accounts where id = account for no key update;
  if not found then raise exception 'there is no account %', account; end if;
  if exists (select from entries where id = entry_id and account_id = account and kind = entry_kind and credited = credit) then return false; end if;
  if exists (select from entries where id = entry_id) then raise exception 'entry % is there already, and is something else', entry_id; end if;

  if is_promotion then perform count_promotions(account); end if;
  change := change_account(account, credit, case when is_promotion then 0 else credit end, 0, case when is_promotion then credit else 0 end, 0);
  insert into entries (id, account_id, kind, credited, promo, debt)
  values (entry_id, account, entry_kind, credit, change.promo_change, change.debt_change);
  if is_promotion then
    insert into promotions (id, account_id, remaining, expires_at) values (entry_id, account, change.promo_change, expires);
  end if;
  return true;
end
$$;

-- An id that is taken by something else is a mistake of whoever sent it, and must not be answered as if it were theirs.
create function require_entry_of(entry_id uuid, corrected uuid) returns void
language plpgsql stable as $$
begin
  if exists (select from entries where id = entry_id and corrects is distinct from corrected) then
    raise exception 'entry % is there already, and is about something else', entry_id;
  end if;
end
$$;

-- What of a payment has not been reversed. A won dispute gives back what the dispute took.
create function reversible_of(payment_id uuid) returns bigint
language sql stable
return (
  select payment.credited
    + coalesce((select sum(reversal.credited) from entries reversal where reversal.corrects = payment.id), 0)
    + coalesce((
        select sum(won.credited) from entries dispute join entries won on won.corrects = dispute.id
        where dispute.corrects = payment.id), 0)
  from entries payment where payment.id = payment_id
)::bigint;

-- Takes a payment back, in whole or in part and never more than is left of it, once for each id: a refund, or a dispute.
-- What the account no longer has becomes debt. Answers how much was reversed, debt included.
create function reverse_payment(reversal_id uuid, payment_id uuid, most bigint, reversal_kind text default 'payment_reversal') returns bigint
language plpgsql volatile as $$
declare
  account uuid;
  reversed bigint;
  change record;
begin
  if reversal_kind not in ('payment_reversal', 'dispute') then raise exception '% reverses no payment', reversal_kind; end if;
  select account_id into account from entries where id = payment_id and kind = 'payment';
  if not found then raise exception 'there is no payment %', payment_id; end if;
  perform 1 from accounts where id = account for no key update;

  perform require_entry_of(reversal_id, payment_id);
  select -credited into reversed from entries where id = reversal_id;
  if found then return reversed; end if;
  reversed := greatest(0, least(most, reversible_of(payment_id)));
  -- One that takes nothing is entered too: the same id answers the same later, when there would be something to take.
  change := change_account(account, -reversed, -reversed, 0, 0, reversed);
  insert into entries (id, account_id, kind, credited, promo, debt, corrects)
  values (reversal_id, account, reversal_kind, -reversed, change.promo_change, change.debt_change, payment_id);
  return reversed;
end
$$;

-- Credits what a dispute took, once for each dispute. Answers how much.
create function win_dispute(entry_id uuid, dispute_id uuid) returns bigint
language plpgsql volatile as $$
declare
  dispute entries%rowtype;
  won bigint;
  change record;
begin
  select * into dispute from entries where id = dispute_id and kind = 'dispute';
  if not found then raise exception 'there is no dispute %', dispute_id; end if;
  perform 1 from accounts where id = dispute.account_id for no key update;

  perform require_entry_of(entry_id, dispute_id);
  select credited into won from entries where id = entry_id;
  if found then return won; end if;
  won := case when exists (select from entries where corrects = dispute_id) then 0 else -dispute.credited end;
  change := change_account(dispute.account_id, won, won, 0, 0, 0);
  insert into entries (id, account_id, kind, credited, promo, debt, corrects)
  values (entry_id, dispute.account_id, 'dispute_won', won, change.promo_change, change.debt_change, dispute_id);
  return won;
end
$$;

-- Takes promotional credit that has expired: what is free now, and the rest when calls release it, never as debt. Answers
-- how many grants expired, of at most so many.
create function expire_promotions(most integer) returns integer
language plpgsql volatile as $$
declare
  at timestamptz;
  accounts_due uuid[];
  account uuid;
  expired bigint;
  taken bigint;
  grants integer;
  all_grants integer := 0;
begin
  select array_agg(distinct due.account_id) into accounts_due
  from (select account_id from promotions where remaining > 0 and expires_at <= clock_timestamp() limit most) due;
  if accounts_due is null then return 0; end if;
  perform 1 from accounts where id = any (accounts_due) order by id for no key update;
  at := clock_timestamp();

  foreach account in array accounts_due loop
    perform count_promotions(account);
    with ended as (
      update promotions row set remaining = 0
      from (select id, remaining from promotions where account_id = account and remaining > 0 and expires_at <= at) due
      where row.id = due.id
      returning due.remaining
    )
    select count(*), coalesce(sum(remaining), 0) into grants, expired from ended;
    all_grants := all_grants + grants;
    continue when expired = 0;

    select least(expired, credited + debt - charged - held) into taken from accounts where id = account;
    update accounts set credited = credited - taken, promo = promo - taken, lapsed = lapsed + expired - taken where id = account;
    if taken > 0 then
      insert into entries (id, account_id, kind, credited, promo, entered_at) values (gen_random_uuid(), account, 'expiry', -taken, -taken, at);
    end if;
  end loop;
  return all_grants;
end
$$;

-- Gives a charge back, once for each id of a reversal; never more than was charged. The allowances that it was counted
-- against get theirs back, what promotional credit paid is promotional credit again until the last of the account's
-- grants expires, and the usage report is corrected in the hour of the reversal. A forgiveness is the operator's loss, as
-- overrun is.
create function reverse_charge(reversal_id uuid, charge_id uuid, most bigint, reversal_kind text default 'charge_reversal') returns bigint
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
  insert into entries (id, account_id, kind, charged, promo, debt, overrun, credential_id, corrects, entered_at)
  values (reversal_id, charge.account_id, reversal_kind, -given, change.promo_change, change.debt_change,
    case when reversal_kind = 'forgiveness' then given else 0 end, charge.credential_id, charge_id, at);
  if change.promo_change > 0 then
    update promotions set remaining = remaining + change.promo_change
    where id = (select id from promotions where account_id = charge.account_id order by expires_at desc, id desc limit 1);
  end if;
  update allowance_periods row set charged = row.charged - given
  from allowances allowance
  where allowance.id = any (charge.allowances) and row.allowance_id = allowance.id
    and row.starts_at = period_start(allowance.period, charge.begun_at);
  if given = 0 then return 0; end if;
  insert into usage_hours as row (credential_id, hour, account_id, requests, failed_requests,
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
  values (charge.credential_id, date_trunc('hour', at, 'UTC'), charge.account_id, 0, 0, 0, 0, 0, 0, 0, -given)
  on conflict (credential_id, hour) do update set charged = row.charged + excluded.charged;
  return given;
end
$$;

-- Gives back a charge whose caller got nothing: it ended uncharged, so its keys and quotes are free again. The entry has
-- the call's own id, so that a call is forgiven once, whoever asks.
create function forgive_charge(charge_id uuid, most bigint) returns bigint
language plpgsql volatile as $$
declare
  given bigint := reverse_charge(charge_id, charge_id, most, 'forgiveness');
begin
  -- Those of a call that has not ended are not kept, and not ours to free.
  delete from claims where call_id = charge_id and kept_until is not null;
  return given;
end
$$;
