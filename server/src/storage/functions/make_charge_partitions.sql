-- As before, and says their names.
create or replace function make_charge_partitions() returns void
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtext('make_charge_partitions'));
  perform make_charge_partition((clock_timestamp() at time zone 'UTC')::date + day) from generate_series(-2, 7) day;
  perform name_days_of_charges();
end
$$;
