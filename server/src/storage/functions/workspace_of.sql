-- To which workspace something belongs: itself, one of its accounts, one of its keys or one of its grants. Null for what is nobody's.
create or replace function workspace_of(one uuid) returns uuid
language sql stable as $$
  select coalesce(
    (select id from workspaces where id = one or live_account_id = one or test_account_id = one),
    (select workspace_id from api_keys where id = one),
    (select workspace_id from grants where id = one)
  )
$$;
