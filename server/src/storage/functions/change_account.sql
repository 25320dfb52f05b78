-- Applies a change to the sums of a locked account; `cash` is the part of the credit that is paid money. Whatever is free then pays debt first, and promotional credit is
-- never more than what the account itself has and has not spent: what paid debt is gone. Answers by how much promo and
-- debt changed.
create or replace function change_account(account uuid, credit bigint, cash bigint, charge bigint, grant_promo bigint, new_debt bigint,
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
