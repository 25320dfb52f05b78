-- Closing a workspace, and taking its data along. Everything here is done at once, because it locks out who signs in: what takes long is in the files before.

-- A workspace is closed at the end of a grace period, unless an owner cancels it before. Whoever asks again asks anew.
create table closures (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  -- Who asked; null for somebody who is no more.
  person_id uuid references people on delete set null,
  asked_at timestamptz not null default clock_timestamp(),
  -- From then on it can't be canceled.
  closes_at timestamptz not null,
  state text not null default 'asked' check (state in ('asked', 'canceled', 'closed')),
  ended_at timestamptz,
  -- The accounts that the asking made inactive: those that canceling makes active again.
  stopped uuid[] not null default '{}',
  -- Who closes it takes it until then, and again with each portion; nobody else looks at it before. One that fails waits for longer each time.
  next_at timestamptz not null default '-infinity',
  -- By which whoever has it knows that nobody else does.
  claim uuid,
  -- How often it has failed since anything of it was done.
  failures integer not null default 0,
  -- As far as it is done: the step, and the row behind which the step goes on.
  reached jsonb,
  constraint ended_is_final check ((ended_at is null) = (state = 'asked'))
);

-- One that is asked for or done: what is closed stays closed.
create unique index closures_open on closures (workspace_id) where state <> 'canceled';
create index closures_due on closures (closes_at) where state = 'asked';
create index closures_of_workspace on closures (workspace_id, asked_at);
create index closures_of_person on closures (person_id);

-- What a workspace takes along is not stored: it is read from the tables, up to the moment when it was asked for.
create table exports (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  person_id uuid references people on delete set null,
  -- Of which money; null for both.
  mode text check (mode in ('live', 'test')),
  -- Taken under the locks of both accounts: what calls were charged until then is committed, and what comes later is later.
  as_of timestamptz not null,
  -- The transaction that asked. What was open beside it may still add to what is told, until all of it has ended.
  asked_in xid8 not null default pg_current_xact_id(),
  expires_at timestamptz not null
);

create index exports_of_workspace on exports (workspace_id, id);
create index exports_of_person on exports (person_id);
create index exports_by_expiry on exports (expires_at);

-- What a row of the audit log says, with the name in it erased.
create or replace function without_name(facts jsonb) returns jsonb
language sql immutable parallel safe
return case when facts ? 'name' then facts || '{"name": "erased"}' else facts end;

-- What was charged, credited and recorded is never changed. Names of people are the exception, because they are erased when the workspace is closed: the label of
-- an end user can be taken away, and in the audit log the name of a workspace or key can become "erased". With it nothing else changes.
create or replace function refuse_change() returns trigger
language plpgsql as $$
begin
  if tg_op = 'UPDATE' and tg_table_name ~ '^(entries|charges)' then
    if new.end_user_label is null and to_jsonb(new) - 'end_user_label' = to_jsonb(old) - 'end_user_label' then
      return new;
    end if;
  elsif tg_op = 'UPDATE' and tg_table_name = 'audit' then
    if to_jsonb(new) = to_jsonb(old) || jsonb_build_object(
      'before', without_name(old.before), 'after', without_name(old.after), 'detail', without_name(old.detail)) then
      return new;
    end if;
  end if;
  raise exception '% are immutable: enter a correction that points at the row', tg_table_name;
end
$$;

-- audit_in_order has what it had.
drop index audit_of_workspace;

-- Who belonged only to workspaces that are closed. The row stays, because grants and the credit for signing up point at it; nothing in it tells who it was.
alter table people add column erased_at timestamptz;
