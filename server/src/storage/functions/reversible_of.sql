-- What of a payment has not been reversed. A won dispute gives back what the dispute took.
create or replace function reversible_of(payment_id uuid) returns bigint
language sql stable
return (
  select payment.credited
    + coalesce((select sum(reversal.credited) from entries reversal where reversal.corrects = payment.id), 0)
    + coalesce((
        select sum(won.credited) from entries dispute join entries won on won.corrects = dispute.id
        where dispute.corrects = payment.id), 0)
  from entries payment where payment.id = payment_id
)::bigint;
