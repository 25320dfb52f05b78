-- An id that is taken by something else is a mistake of whoever sent it, and must not be answered as if it were theirs.
create or replace function require_entry_of(entry_id uuid, corrected uuid) returns void
language plpgsql stable as $$
begin
  if exists (select from entries where id = entry_id and corrects is distinct from corrected) then
    raise exception 'entry % is there already, and is about something else', entry_id;
  end if;
end
$$;
