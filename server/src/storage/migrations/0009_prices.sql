-- What operators change about prices. The published default stands with the operation itself, as version 0.

create table price_versions (
  operation text not null check (length(operation) between 1 and 64),
  version integer not null check (version > 0),
  -- USD for a unit of the operation.
  unit_price numeric not null check (unit_price >= 0),
  -- What the upstream charges us for a unit.
  provider_cost numeric check (provider_cost >= 0),
  created_at timestamptz not null default clock_timestamp(),
  primary key (operation, version)
);

-- An account with its own pricing pays that, whatever its plan.
create table account_prices (
  account_id uuid not null references accounts,
  operation text not null check (length(operation) between 1 and 64),
  unit_price numeric not null check (unit_price >= 0),
  primary key (account_id, operation)
);

-- How a call went, beside what the ledger says it cost: evidence, attempts, times. Kept for a while, and never needed to
-- know what was charged.
create table request_records (
  id uuid primary key,
  detail jsonb not null
);
