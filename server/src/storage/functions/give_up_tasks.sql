-- Voids the calls of tasks, their bound the operator's loss, and frees their places. The accounts are locked before the holds are read.
create or replace function give_up_tasks(due uuid[]) returns table (id uuid, overrun bigint)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  ids uuid[];
  accounts_of uuid[];
  amounts bigint[];
begin
  perform 1 from accounts
  where accounts.id in (select account_id from holds where id = any (due))
  order by accounts.id for no key update;
  select array_agg(id), array_agg(account_id), array_agg(amount) into ids, accounts_of, amounts from holds where id = any (due);
  if ids is null then return; end if;
  return query select ended.id, ended.overrun from end_unsettled(ids, accounts_of, amounts, true) ended;
end
$$;
