-- Notes that accounts have end users, and that they were seen; no end user stands in it twice. Known is false where the account has as many as it
-- may and this is none of them. One who gets a place when others have been turned away may have spent as one of those before: late_at says
-- until when that can have been.
create or replace function know_end_users(accounts_in uuid[], end_users_in uuid[], labels text[], most integer)
returns table (known boolean, late_at timestamptz)
language plpgsql volatile
set lock_timeout = '2s'
as $$
declare
  place integer; is_known boolean; late timestamptz;
  answers_known boolean[] := array_fill(false, array[cardinality(end_users_in)]);
  answers_late timestamptz[] := array_fill(null::timestamptz, array[cardinality(end_users_in)]);
begin
  -- In one order, so that two batches do not wait for each other.
  for place in select item.place from unnest(accounts_in, end_users_in) with ordinality item (account, id, place) order by account, id loop
    update end_users row set seen_at = clock_timestamp() where account_id = accounts_in[place] and id = end_users_in[place]
    returning row.late_at into late;
    is_known := found;
    if is_known then
      answers_known[place] := true; answers_late[place] := late;
      continue;
    end if;
    -- New ones of an account come one after the other, so that none is one too many.
    insert into end_user_counts (account_id, users) values (accounts_in[place], 0) on conflict do nothing;
    perform 1 from end_user_counts where account_id = accounts_in[place] for no key update;
    insert into end_users as row (account_id, id, label, seen_at, late_at)
    select account_id, end_users_in[place], labels[place], clock_timestamp(),
      -- A process may take it for one of the others for a minute more.
      case when turned_away then clock_timestamp() + interval '2 minutes' end
    from end_user_counts where account_id = accounts_in[place] and users < most
    on conflict do nothing returning row.late_at into late;
    is_known := found;
    if is_known then
      update end_user_counts set users = users + 1 where account_id = accounts_in[place];
    else
      select row.late_at into late from end_users row where row.account_id = accounts_in[place] and row.id = end_users_in[place];
      is_known := found;
      if not is_known then
        update end_user_counts set turned_away = true where account_id = accounts_in[place] and not turned_away;
      end if;
    end if;
    answers_known[place] := is_known; answers_late[place] := late;
  end loop;
  return query select * from unnest(answers_known, answers_late);
end
$$;
