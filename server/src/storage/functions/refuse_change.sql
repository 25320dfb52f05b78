-- What was charged, credited and recorded is never changed. Names of people are the exception, because they are erased when the workspace is closed: the label of
-- an end user can be taken away, and in the audit log the name of a workspace or key can become "erased". With it nothing else changes.
create or replace function refuse_change() returns trigger
language plpgsql as $$
begin
  if tg_op = 'UPDATE' and tg_table_name ~ '^(entries|charges)' then
    if new.end_user_label is null and to_jsonb(new) - 'end_user_label' = to_jsonb(old) - 'end_user_label' then
      return new;
    end if;
  elsif tg_op = 'UPDATE' and tg_table_name = 'audit' then
    if to_jsonb(new) = to_jsonb(old) || jsonb_build_object(
      'before', without_name(old.before), 'after', without_name(old.after), 'detail', without_name(old.detail)) then
      return new;
    end if;
  end if;
  raise exception '% are immutable: enter a correction that points at the row', tg_table_name;
end
$$;
