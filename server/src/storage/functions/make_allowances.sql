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
