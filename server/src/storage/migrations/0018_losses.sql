-- What calls cost the operator beyond what they were charged, where there is evidence for it: the upstream reported more than was
-- held, or delivered what can't be read. What is only presumed (broken connections, timeouts, calls that nobody resolved) is in
-- the overrun of its charge and not here, because an outage must never look like a loss that somebody causes.
--
-- The statement that ends a call inserts the row. Nobody updates one, and none is shared by accounts: processes add them up.
create table losses (
  -- The call.
  id uuid primary key,
  account_id uuid not null,
  -- What was sold, the slot that was asked, and the mode: `gpt@openai:live`.
  route text not null,
  nanos bigint not null check (nanos > 0),
  -- What the upstream says that the whole call used, at the prices of the call; null where it says nothing that can be read.
  claim bigint,
  at timestamptz not null
);

-- Read every second from a few minutes ago on; all columns that are added up are in it.
create index losses_by_time on losses (at) include (route, account_id, nanos);

-- An operator has looked: losses up to this moment no longer count, of an account at a route or of all accounts there.
create table loss_releases (
  id uuid primary key,
  route text not null,
  account_id uuid,
  actor text not null,
  at timestamptz not null default clock_timestamp()
);

create index loss_releases_of_route on loss_releases (route, at);
create index loss_releases_by_time on loss_releases (at);
