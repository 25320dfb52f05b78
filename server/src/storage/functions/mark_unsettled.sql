-- Marks calls that nobody runs any more: what they hold stays held, and their place among the calls at once is free. What has been given to its
-- task is nobody's orphan.
create or replace function mark_unsettled(ids uuid[], of uuid) returns table (id uuid, account_id uuid, owner_id uuid)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  at timestamptz;
begin
  perform 1 from accounts
  where accounts.id in (select holds.account_id from holds where holds.id = any (ids))
  order by accounts.id for no key update;
  at := clock_timestamp();

  return query
  with orphans as (
    select holds.id, holds.at_once from holds
    where holds.id = any (ids) and unsettled_at is null
      and case
        when of is null then owner_id is not null and not exists (select from owners where owners.id = holds.owner_id and lease_until >= at)
        else owner_id = of
      end
  ), marked as (
    update holds set unsettled_at = at, at_once = false
    from orphans where holds.id = orphans.id
    returning holds.id, holds.account_id, holds.owner_id, holds.credential_id, orphans.at_once as had_place
  ), freed as (
    delete from claims using marked where claims.call_id = marked.id and claims.ends_with_owner
  ), counted as (
    update credentials row set calls_at_once = row.calls_at_once - left_by.places
    from (select credential_id, count(*)::integer as places from marked where had_place group by credential_id order by credential_id) left_by
    where row.id = left_by.credential_id
  )
  select marked.id, marked.account_id, marked.owner_id from marked;
end
$$;
