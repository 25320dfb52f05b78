-- A linked account is listed by the account of its key, which never changes.
create or replace function name_account_of_link() returns trigger
language plpgsql as $$
begin
  new.account_id := (select account_id from credentials where id = new.credential_id);
  return new;
end
$$;
