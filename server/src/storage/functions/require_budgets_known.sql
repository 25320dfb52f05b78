-- Refuses where a process still runs that would not hold calls against the budget which is about to be set. None can start until this
-- transaction has ended.
create or replace function require_budgets_known() returns void
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(hashtext('farebox budgets'));
  if exists (select from owners where knows < 1 and lease_until > clock_timestamp()) then
    raise exception using errcode = 'FB001', message = 'a process of the release before is still running';
  end if;
end
$$;
