-- Gives a charge back, once for each id of a reversal; never more than was charged. The allowances that it was counted
-- against get theirs back, what promotional credit paid is promotional credit again until the last of the account's
-- grants expires, and the usage report is corrected in the hour of the reversal, for whom the call was made. A forgiveness is the loss of the operator, as
-- overrun is. A plan that is made for its id opens and locks the day of the charge alone; one for any id would do so with all days.
create or replace function reverse_charge(reversal_id uuid, charge_id uuid, most bigint, reversal_kind text default 'charge_reversal') returns bigint
language plpgsql volatile
set plan_cache_mode = force_custom_plan
as $$
declare
  charge charges%rowtype;
  given_before bigint;
  given bigint;
  given_promo bigint;
  change record;
  at timestamptz;
begin
  if reversal_kind not in ('charge_reversal', 'forgiveness') then raise exception '% gives no charge back', reversal_kind; end if;
  select * into charge from charges where id = charge_id;
  if not found then return 0; end if;
  perform 1 from accounts where id = charge.account_id for no key update;
  at := clock_timestamp();

  perform require_entry_of(reversal_id, charge_id);
  select -charged into given from entries where id = reversal_id;
  if found then return given; end if;
  select coalesce(-sum(charged), 0) into given_before from entries where corrects = charge_id;
  given := greatest(0, least(most, charge.amount - given_before));
  -- Entered even where it gives nothing, so that the same id answers the same; but a call that was never charged may yet
  -- need an entry of its own id, for what it cost us.
  if given = 0 and reversal_kind = 'forgiveness' then return 0; end if;
  given_promo := least(given_before + given, charge.promo) - least(given_before, charge.promo);

  if given_promo > 0 then perform count_promotions(charge.account_id); end if;
  change := change_account(charge.account_id, 0, 0, -given, given_promo, 0);
  insert into entries (id, account_id, kind, charged, promo, debt, overrun, credential_id, corrects, entered_at,
    operation, model, route, end_user, end_user_label, tags)
  values (reversal_id, charge.account_id, reversal_kind, -given, change.promo_change, change.debt_change,
    case when reversal_kind = 'forgiveness' then given else 0 end, charge.credential_id, charge_id, at,
    charge.operation, charge.model, charge.route, charge.end_user, charge.end_user_label, charge.tags);
  if change.promo_change > 0 then
    update promotions set remaining = remaining + change.promo_change
    where id = (select id from promotions where account_id = charge.account_id order by expires_at desc, id desc limit 1);
  end if;
  update kept_periods row set charged = row.charged - given
  from allowances allowance
  where allowance.id = any (charge.allowances) and row.allowance_id = allowance.id
    and row.starts_at = period_start(allowance.period, charge.begun_at);
  update credentials row set budget_charged = row.budget_charged - given
  from allowances allowance
  where allowance.id = any (charge.allowances) and row.id = allowance.credential_id and row.budget_id = allowance.id
    and row.budget_starts_at = period_start(allowance.period, charge.begun_at);
  if given = 0 then return 0; end if;
  insert into usage_tail (account_id, credential_id, at, operation, model, end_user, end_user_label, tags,
    requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
  values (charge.account_id, charge.credential_id, at, charge.operation, charge.model, charge.end_user, charge.end_user_label,
    charge.tags, 0, 0, 0, 0, 0, 0, 0, -given);
  return given;
end
$$;
