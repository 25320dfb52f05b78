-- Those of these ids that have ended, and how, `days` being the days that the ids carry. The charges of a day are asked by
-- name: a plan over all partitions would open and lock a thousand of them for every batch. Fails where a day has no
-- partition, before anything is held.
create or replace function ended_among(ids uuid[], days date[]) returns table (id uuid, account_id uuid, outcome text, amount bigint, overrun bigint)
language plpgsql stable as $$
declare
  day date;
begin
  foreach day in array days loop
    return query execute
      'select id, account_id, outcome, amount, overrun from charges_' || to_char(day, 'YYYYMMDD') || ' where id = any ($1)' using ids;
  end loop;
end
$$;
