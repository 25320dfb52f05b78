-- Puts the running period of a credential's own budget into the credential's row, so that a call changes one row for all that its credential has of its own.
-- What stood there before is kept with the others. Says whether anything was moved: not where it stands there, nor where the allowance can't stand there, because it
-- is not of the account, follows a budget of everybody, or stands with another credential.
create or replace function meter_budget(credential uuid, allowance uuid) returns boolean
language plpgsql volatile as $$
declare
  account uuid;
  own record;
  wanted record;
  running timestamptz;
  kept record;
begin
  select account_id into account from credentials where id = credential;
  perform 1 from accounts where id = account for no key update;
  select * into own from credentials where id = credential;
  select * into wanted from allowances where id = allowance and account_id = account and follows is null;
  if not found or wanted.credential_id <> credential then return false; end if;
  running := period_start(wanted.period, clock_timestamp());
  if own.budget_id = allowance and own.budget_starts_at = running then return false; end if;

  if own.budget_id is not null then
    insert into kept_periods (allowance_id, starts_at, amount, charged, held)
    values (own.budget_id, own.budget_starts_at, own.budget_amount, own.budget_charged, own.budget_held);
    if own.budget_id <> allowance then update allowances set credential_id = null where id = own.budget_id; end if;
  end if;
  delete from kept_periods where allowance_id = allowance and starts_at = running returning * into kept;
  update credentials set
    budget_id = allowance, budget_starts_at = running, budget_ceiling = wanted.amount,
    budget_ends_at = case wanted.period
      when 'day' then (running at time zone 'UTC' + interval '1 day') at time zone 'UTC'
      when 'week' then (running at time zone 'UTC' + interval '7 days') at time zone 'UTC'
      when 'month' then (running at time zone 'UTC' + interval '1 month') at time zone 'UTC'
      else 'infinity' end,
    budget_amount = coalesce(kept.amount, wanted.amount), budget_charged = coalesce(kept.charged, 0), budget_held = coalesce(kept.held, 0)
  where id = credential;
  if wanted.credential_id is null then update allowances set credential_id = credential where id = allowance; end if;
  return true;
end
$$;
