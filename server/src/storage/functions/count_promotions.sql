-- Spreads what calls have spent of a locked account's promotional credit over its grants: those that expire first are
-- spent first.
create or replace function count_promotions(account uuid) returns void
language sql volatile as $$
  update promotions row set remaining = row.remaining - spent.amount
  from (
    select id, least(remaining, greatest(0, total - still_there - before_it)) as amount
    from (
      select id, remaining, sum(remaining) over () as total,
        sum(remaining) over (order by expires_at, id) - remaining as before_it
      from promotions where account_id = account and remaining > 0
    ) grants
    cross join (select promo - lapsed as still_there from accounts where id = account) left_of_it
  ) spent
  where row.id = spent.id and spent.amount > 0
$$;
