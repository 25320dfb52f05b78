-- An operator suspends a workspace, and says why; null where it is not suspended. Whether its accounts are active follows from that and from its closures, so a
-- closure no longer remembers which accounts it stopped.
alter table workspaces
  add column suspended_at timestamptz,
  add column suspended_reason text,
  add constraint suspended_with_reason check ((suspended_at is null) = (suspended_reason is null));

alter table closures drop column stopped;

-- A budget that an operator has set is changed and removed by operators alone.
alter table budgets add column is_operators boolean not null default false;
