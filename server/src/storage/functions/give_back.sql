-- Gives back what accounts hold for calls that do not begin after all, within the statement that took it: of those at the places `held` all but those at `kept`.
create or replace function give_back(accounts_in uuid[], amounts bigint[], held integer[], kept integer[]) returns void
language plpgsql volatile as $$
begin
  update accounts row set held = row.held - amounts[place]
  from unnest(give_back.held) place
  where row.id = any (array[accounts_in[place]]) and place <> all (coalesce(kept, '{}'));
end
$$;
