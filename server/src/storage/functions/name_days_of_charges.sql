-- The days from two ago to a week ahead are known to has_ended() by name, those first that most calls are of; any other is
-- asked as before.
create or replace function name_days_of_charges() returns void
language plpgsql volatile as $$
declare
  today constant date := (clock_timestamp() at time zone 'UTC')::date;
  cases text;
  body text;
begin
  select string_agg(format(
    '    when %L then if exists (select from %I where id = any (ids)) then return true; end if;',
    -- Whoever calls it may have another way to write a date than whoever writes it.
    to_char(today + day, 'YYYY-MM-DD'), 'charges_' || to_char(today + day, 'YYYYMMDD')
  ), E'\n' order by abs(day), day desc)
  into cases
  from generate_series(-2, 7) day
  where to_regclass('charges_' || to_char(today + day, 'YYYYMMDD')) is not null;

  body := format('
declare
  day date;
begin
  foreach day in array days loop
    case day
%s
    else if exists (select from ended_among(ids, array[day])) then return true; end if;
    end case;
  end loop;
  return false;
end
', cases);
  if body <> (select prosrc from pg_proc where oid = 'has_ended(uuid[], date[])'::regprocedure) then
    execute format('create or replace function has_ended(ids uuid[], days date[]) returns boolean language plpgsql stable as %L', body);
  end if;
end
$$;
