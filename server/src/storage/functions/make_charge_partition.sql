-- Made by itself and then attached: that locks nobody out, as making it in its place would.
create or replace function make_charge_partition(day date) returns void
language plpgsql as $$
declare
  starts timestamptz := day::timestamp at time zone 'UTC';
  name text := 'charges_' || to_char(day, 'YYYYMMDD');
begin
  if to_regclass(name) is null then
    execute format('create table %I (like charges including defaults including constraints)', name);
    execute format('alter table charges attach partition %I for values from (%L) to (%L)',
      name, first_id_at(starts), first_id_at(starts + interval '1 day'));
  end if;
end
$$;
