-- Adds up some usage where nobody else does: processes of this release add up all of it every few seconds.
create or replace function add_up_forgotten_usage() returns void
language plpgsql volatile as $$
begin
  if exists (select from usage_tail where at < clock_timestamp() - interval '1 minute') then
    perform add_up_usage(most => 1000);
  end if;
end
$$;
