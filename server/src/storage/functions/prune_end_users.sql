-- Forgets end users that nobody has seen for so long, at most so many. What they have spent stays counted: an allowance is not forgotten.
create or replace function prune_end_users(older_than_days integer, most integer) returns integer
language plpgsql volatile as $$
declare
  pruned integer;
begin
  -- One at a time, so that two do not wait for each other's accounts.
  if not pg_try_advisory_xact_lock(hashtext('farebox end users')) then return 0; end if;
  with old as (
    select account_id, id from end_users where seen_at < clock_timestamp() - make_interval(days => older_than_days)
    order by seen_at limit most for update skip locked
  ), gone as (
    delete from end_users using old where end_users.account_id = old.account_id and end_users.id = old.id returning end_users.account_id
  ), sums as materialized (
    select account_id, count(*)::integer as users from gone group by account_id
  ), counted as (
    update end_user_counts set users = greatest(0, end_user_counts.users - sums.users) from sums
    where end_user_counts.account_id = sums.account_id returning sums.users
  )
  select coalesce(sum(users), 0) into pruned from counted;
  return pruned;
end
$$;
