-- What operators have taken out of sale, and why. What is not here is sold where an upstream can be asked for it. A model has its switch in its own row.
create table switched_off (
  kind text not null check (kind in ('operation', 'category')),
  name text not null check (length(name) between 1 and 64),
  reason text not null check (length(reason) between 1 and 300),
  since timestamptz not null default clock_timestamp(),
  primary key (kind, name)
);

create function tell_sold() returns trigger language plpgsql as $$ begin return null; end $$;
create trigger sold_changes after insert or update or delete on switched_off
for each statement execute function tell_sold();
