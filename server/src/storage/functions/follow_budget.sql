-- Gives every allowance that follows a budget the amount that the budget has now. Lowering takes effect as what is spoken for already, where
-- that is more, as for a single allowance.
create or replace function follow_budget(budget uuid) returns void
language plpgsql volatile as $$
begin
  perform 1 from accounts where id = (select account_id from budgets where id = budget) for no key update;
  update allowances set amount = budgets.amount from budgets
  where budgets.id = budget and allowances.follows = budget and allowances.amount <> budgets.amount;
  update allowance_periods row set amount = greatest(allowance.amount, row.charged + row.held)
  from allowances allowance
  where allowance.follows = budget and row.allowance_id = allowance.id and row.starts_at = period_start(allowance.period, clock_timestamp());
end
$$;
