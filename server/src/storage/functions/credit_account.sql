-- Adds money, once for each id. Debt is paid first.
create or replace function credit_account(entry_id uuid, account uuid, entry_kind text, credit bigint, expires timestamptz default 'infinity') returns boolean
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
