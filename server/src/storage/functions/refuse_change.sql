create or replace function refuse_change() returns trigger
language plpgsql as $$
begin
  raise exception '% are immutable: enter a correction that points at the row', tg_table_name;
end
$$;
