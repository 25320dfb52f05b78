-- Gives back what accounts hold for credentials whose calls do not begin after all, within the statement that took it: of those of the accounts `held` all but `kept`.
create or replace function give_back(credentials_in credential_to_begin[], held uuid[], kept uuid[]) returns void
language plpgsql volatile as $$
begin
  update accounts row set held = row.held - sums.amount
  from (
    select account_id, sum(amount)::bigint as amount from unnest(credentials_in) item
    where account_id = any (give_back.held) and id <> all (coalesce(kept, '{}')) group by account_id
  ) sums
  where row.id = any (array[sums.account_id]);
end
$$;
