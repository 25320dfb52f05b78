-- Notes that an account has an end user, and that it was seen. False where the account has as many as it may and this is none of them.
create or replace function know_end_user(account uuid, end_user uuid, label_in text, most integer) returns boolean
language plpgsql volatile as $$
begin
  update end_users set seen_at = clock_timestamp() where account_id = account and id = end_user;
  if found then return true; end if;
  -- New ones of an account come one after the other, so that none is one too many.
  insert into end_user_counts (account_id, users) values (account, 0) on conflict do nothing;
  perform 1 from end_user_counts where account_id = account for no key update;
  insert into end_users (account_id, id, label, seen_at)
  select account, end_user, label_in, clock_timestamp() from end_user_counts where account_id = account and users < most
  on conflict do nothing;
  if found then
    update end_user_counts set users = users + 1 where account_id = account;
    return true;
  end if;
  return exists (select from end_users where account_id = account and id = end_user);
end
$$;
