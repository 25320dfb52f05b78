-- What was charged, credited and recorded is never changed. The label of an end user is the exception: it can be the name of a person, and is erased when
-- the workspace is closed. It can only be taken away, and with it nothing else.
create or replace function refuse_change() returns trigger
language plpgsql as $$
begin
  if tg_op = 'UPDATE' and tg_table_name ~ '^(entries|charges)' then
    if new.end_user_label is null and to_jsonb(new) - 'end_user_label' = to_jsonb(old) - 'end_user_label' then
      return new;
    end if;
  end if;
  raise exception '% are immutable: enter a correction that points at the row', tg_table_name;
end
$$;
