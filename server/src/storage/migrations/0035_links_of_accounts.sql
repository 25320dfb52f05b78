-- Nobody reads or writes linked accounts until this commits. There is one for a key at most.

-- A linked account is listed by the account of its key, which never changes.
create or replace function name_account_of_link() returns trigger
language plpgsql as $$
begin
  new.account_id := (select account_id from credentials where id = new.credential_id);
  return new;
end
$$;

-- Who writes one of the release before does not name the account.
alter table link_sessions add column account_id uuid;
create trigger link_names_account before insert on link_sessions for each row execute function name_account_of_link();
update link_sessions set account_id = (select account_id from credentials where id = credential_id);
create index link_sessions_of_account on link_sessions (account_id, credential_id);
