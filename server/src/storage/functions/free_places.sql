-- Frees the places among the calls at once of calls that this process goes on with for callers who have left.
create or replace function free_places(ids uuid[], of uuid) returns void
language plpgsql volatile as $$
begin
  perform 1 from accounts
  where accounts.id in (select holds.account_id from holds where holds.id = any (ids))
  order by accounts.id for no key update;
  with freed as (
    update holds set at_once = false where id = any (ids) and owner_id = of and at_once returning credential_id
  )
  update credentials row set calls_at_once = row.calls_at_once - left_by.places
  from (select credential_id, count(*)::integer as places from freed group by credential_id order by credential_id) left_by
  where row.id = left_by.credential_id;
end
$$;
