-- Takes promotional credit that has expired: what is free now, and the rest when calls release it, never as debt. Answers
-- how many grants expired, of at most so many.
create or replace function expire_promotions(most integer) returns integer
language plpgsql volatile as $$
declare
  at timestamptz;
  accounts_due uuid[];
  account uuid;
  expired bigint;
  taken bigint;
  grants integer;
  all_grants integer := 0;
begin
  select array_agg(distinct due.account_id) into accounts_due
  from (select account_id from promotions where remaining > 0 and expires_at <= clock_timestamp() limit most) due;
  if accounts_due is null then return 0; end if;
  perform 1 from accounts where id = any (accounts_due) order by id for no key update;
  at := clock_timestamp();

  foreach account in array accounts_due loop
    perform count_promotions(account);
    with ended as (
      update promotions row set remaining = 0
      from (select id, remaining from promotions where account_id = account and remaining > 0 and expires_at <= at) due
      where row.id = due.id
      returning due.remaining
    )
    select count(*), coalesce(sum(remaining), 0) into grants, expired from ended;
    all_grants := all_grants + grants;
    continue when expired = 0;

    select least(expired, credited + debt - charged - held) into taken from accounts where id = account;
    update accounts set credited = credited - taken, promo = promo - taken, lapsed = lapsed + expired - taken where id = account;
    if taken > 0 then
      insert into entries (id, account_id, kind, credited, promo, entered_at) values (gen_random_uuid(), account, 'expiry', -taken, -taken, at);
    end if;
  end loop;
  return all_grants;
end
$$;
