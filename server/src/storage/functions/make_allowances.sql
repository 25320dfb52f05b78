-- Makes the allowances of those who have a budget because everybody has one, each when it is met for the first time: `ids` are theirs, and
-- `budgets_in` what they follow. Who comes second finds it made. Gives those that there are: where a budget was removed meanwhile, there may
-- be none.
create or replace function make_allowances(account uuid, ids uuid[], budgets_in uuid[]) returns setof uuid
language plpgsql volatile as $$
begin
  -- Under the lock under which amounts are changed, so that none begins with what was before.
  perform 1 from accounts where id = account for no key update;
  insert into allowances (id, account_id, period, amount, follows)
  select item.id, budget.account_id, budget.period, budget.amount, budget.id
  from unnest(ids, budgets_in) item (id, budget_id) join budgets budget on budget.id = item.budget_id and budget.account_id = account
  on conflict (id) do nothing;
  return query select id from allowances where id = any (ids) and account_id = account;
end
$$;
