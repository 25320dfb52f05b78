-- Lowering an allowance takes effect as what is spoken for already, where that is more.
create or replace function change_allowance(allowance uuid, new_amount bigint) returns void
language plpgsql volatile as $$
begin
  perform 1 from accounts where id = (select account_id from allowances where id = allowance) for no key update;
  update allowances set amount = new_amount where id = allowance;
  update allowance_periods set amount = greatest(new_amount, charged + held)
  where allowance_id = allowance and starts_at = (select period_start(period, clock_timestamp()) from allowances where id = allowance);
end
$$;
