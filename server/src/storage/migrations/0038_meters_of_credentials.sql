-- What a credential has of its own gets a place in its row: the window of all its requests, how many calls it has at once, and the running period of its own
-- budget. A call wrote and read a row for each of them; one statement can now judge and write it all: docs/decisions/0048.
--
-- Nothing is written there yet. This file has one table and waits for none while it has it: look-ups of keys lock credentials first and accounts later, calls
-- the other way round.
alter table credentials
  -- The window of the limit group "all"; null where there was none.
  add column all_started_at timestamptz,
  add column all_requests integer not null default 0,
  add column all_tokens bigint not null default 0,
  -- Open holds that say at_once.
  add column calls_at_once integer not null default 0,
  -- A period of its own budget: null, or that one stands here and not among those that are kept.
  add column budget_id uuid,
  add column budget_starts_at timestamptz,
  add column budget_ends_at timestamptz,
  -- The amount of the allowance, below which that of the period may not be lowered while it is spoken for.
  add column budget_ceiling bigint,
  add column budget_amount bigint not null default 0,
  add column budget_charged bigint not null default 0,
  add column budget_held bigint not null default 0,
  add constraint no_overspend check (budget_charged + budget_held <= budget_amount),
  add constraint budget_is_sound check (
    budget_charged >= 0 and budget_held >= 0 and num_nulls(budget_id, budget_starts_at, budget_ends_at, budget_ceiling) in (0, 4)
  );
-- Every call changes the row twice.
alter table credentials set (fillfactor = 50);
create unique index credentials_of_budget on credentials (budget_id) where budget_id is not null;
