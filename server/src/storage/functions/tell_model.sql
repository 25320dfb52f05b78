-- Whoever changes what belongs to a model, and however, every process learns of it with the commit. The argument names the
-- column that has the model's name.
create or replace function tell_model() returns trigger
language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform record_change('model', to_jsonb(old) ->> tg_argv[0]);
  end if;
  if tg_op <> 'DELETE' then
    perform record_change('model', to_jsonb(new) ->> tg_argv[0]);
  end if;
  return null;
end
$$;
