-- Whether none of these ids has a hold or has ended. Volatile, so that it reads what is there now: the statement that asks may have waited for a lock since
-- it began.
create or replace function calls_are_new(ids uuid[], days date[]) returns boolean
language plpgsql volatile as $$
begin
  return not (exists (select from holds where id = any (ids)) or has_ended(ids, days));
end
$$;
