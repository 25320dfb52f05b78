-- Gives back a charge whose caller got nothing: it ended uncharged, so its keys and quotes are free again. The entry has
-- the call's own id, so that a call is forgiven once, whoever asks.
create or replace function forgive_charge(charge_id uuid, most bigint) returns bigint
language plpgsql volatile as $$
declare
  given bigint := reverse_charge(charge_id, charge_id, most, 'forgiveness');
begin
  -- Those of a call that has not ended are not kept, and not ours to free.
  delete from claims where call_id = charge_id and kept_until is not null;
  return given;
end
$$;
