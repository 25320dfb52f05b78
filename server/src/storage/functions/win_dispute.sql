-- Credits what a dispute took, once for each dispute. Answers how much.
create or replace function win_dispute(entry_id uuid, dispute_id uuid) returns bigint
language plpgsql volatile as $$
declare
  dispute entries%rowtype;
  won bigint;
  change record;
begin
  select * into dispute from entries where id = dispute_id and kind = 'dispute';
  if not found then raise exception 'there is no dispute %', dispute_id; end if;
  perform 1 from accounts where id = dispute.account_id for no key update;

  perform require_entry_of(entry_id, dispute_id);
  select credited into won from entries where id = entry_id;
  if found then return won; end if;
  won := case when exists (select from entries where corrects = dispute_id) then 0 else -dispute.credited end;
  change := change_account(dispute.account_id, won, won, 0, 0, 0);
  insert into entries (id, account_id, kind, credited, promo, debt, corrects)
  values (entry_id, dispute.account_id, 'dispute_won', won, change.promo_change, change.debt_change, dispute_id);
  return won;
end
$$;
