-- Lowering an allowance takes effect as what is spoken for already, where that is more.
create or replace function change_allowance(allowance uuid, new_amount bigint) returns void
language plpgsql volatile as $$
declare
  running timestamptz;
  meter uuid;
begin
  perform 1 from accounts where id = (select account_id from allowances where id = allowance) for no key update;
  update allowances set amount = new_amount where id = allowance
  returning period_start(period, clock_timestamp()), credential_id into running, meter;
  update kept_periods set amount = greatest(new_amount, charged + held) where allowance_id = allowance and starts_at = running;
  update credentials set
    budget_ceiling = new_amount,
    budget_amount = case when budget_starts_at = running then greatest(new_amount, budget_charged + budget_held) else budget_amount end
  where id = meter and budget_id = allowance;
end
$$;
