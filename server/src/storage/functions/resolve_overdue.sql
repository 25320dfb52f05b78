-- Ends calls that have been unsettled for too long, at most so many: voided, their bound the operator's loss.
create or replace function resolve_overdue(seconds double precision, most integer) returns table (id uuid, account_id uuid, overrun bigint)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  due uuid[];
  ids uuid[];
  accounts_of uuid[];
  amounts bigint[];
begin
  due := array(select id from holds where unsettled_at < clock_timestamp() - make_interval(secs => seconds) order by unsettled_at limit most);
  perform 1 from accounts
  where accounts.id in (select account_id from holds where id = any (due))
  order by accounts.id for no key update;
  -- Some may have been settled meanwhile.
  select array_agg(id), array_agg(account_id), array_agg(amount) into ids, accounts_of, amounts from holds where id = any (due);
  if ids is null then return; end if;
  return query select ended.id, ended.account_id, ended.overrun from end_unsettled(ids, accounts_of, amounts, true) ended;
end
$$;
