-- Ends one call that is unsettled, by what an operator knows of it: charges that much, at most what was held, or voids it
-- where the amount is null. Answers no row where the call is not unsettled: somebody runs it, or it has ended.
create or replace function resolve_call(call_id uuid, amount bigint) returns table (outcome text, charged bigint, overrun bigint)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  account uuid;
begin
  select account_id into account from holds where id = call_id;
  perform 1 from accounts where id = account for no key update;
  perform 1 from holds where id = call_id and unsettled_at is not null;
  if not found then return; end if;
  return query select ended.outcome, ended.charged, ended.overrun
  from end_unsettled(array[call_id], array[account], array[amount], false) ended;
end
$$;
