-- Ends tasks that their upstream has said for so long not to know, at most so many: voided, their bound the operator's loss, and their places free.
create or replace function expire_unknown_tasks(after_seconds double precision, most integer) returns table (id uuid, overrun bigint)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  due uuid[];
  ids uuid[];
  accounts_of uuid[];
  amounts bigint[];
begin
  due := array(select id from tasks
    where ended_at is null and unknown_since < clock_timestamp() - make_interval(secs => after_seconds)
    order by unknown_since limit most);
  perform 1 from accounts
  where accounts.id in (select account_id from holds where id = any (due))
  order by accounts.id for no key update;
  select array_agg(id), array_agg(account_id), array_agg(amount) into ids, accounts_of, amounts from holds where id = any (due);
  if ids is null then return; end if;
  return query select ended.id, ended.overrun from end_unsettled(ids, accounts_of, amounts, true) ended;
end
$$;
