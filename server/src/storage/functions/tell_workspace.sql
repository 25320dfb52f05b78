-- A top-up changes the tier, and with its own commit tells every process so. Beginning and ending calls set neither column,
-- so they never come here.
create or replace function tell_workspace() returns trigger
language plpgsql as $$
begin
  perform record_change('workspace', id::text) from workspaces where live_account_id = new.id or test_account_id = new.id;
  return null;
end
$$;
