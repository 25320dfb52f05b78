-- Whoever changes an upstream, and however, every process learns of it with the commit.
create or replace function tell_upstream() returns trigger
language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform record_change('upstream', old.slot || ' ' || old.mode);
  end if;
  if tg_op <> 'DELETE' then
    perform record_change('upstream', new.slot || ' ' || new.mode);
  end if;
  return null;
end
$$;
