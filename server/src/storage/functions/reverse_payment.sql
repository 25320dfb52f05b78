-- Takes a payment back, in whole or in part and never more than is left of it, once for each id: a refund, or a dispute.
-- What the account no longer has becomes debt. Answers how much was reversed, debt included.
create or replace function reverse_payment(reversal_id uuid, payment_id uuid, most bigint, reversal_kind text default 'payment_reversal') returns bigint
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
