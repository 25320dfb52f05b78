-- Closing a workspace, and taking its data along.

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
  constraint ended_is_final check ((ended_at is null) = (state = 'asked'))
);

create unique index closures_open on closures (workspace_id) where state = 'asked';
create index closures_due on closures (closes_at) where state = 'asked';
create index closures_of_workspace on closures (workspace_id, asked_at);
create index closures_of_person on closures (person_id);

-- Who belonged only to workspaces that are closed. The row stays, because grants and the credit for signing up point at it; nothing in it tells who it was.
alter table people add column erased_at timestamptz;

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

-- Lists whose pages are few among very many others: keys of a state in one mode, changes of one kind or of one thing, links of an account.
create index credentials_active on credentials (account_id, id) where active;
create index credentials_ended on credentials (account_id, id) where not active;
create index audit_in_order on audit (workspace_id, at, id);
drop index audit_of_workspace;
create index audit_by_action on audit (workspace_id, action, at, id);
create index audit_by_kind on audit (workspace_id, split_part(action, '.', 1), at, id);
create index audit_of_subject_in_order on audit (workspace_id, subject, at, id);

-- A linked account is listed by the account of its key, which never changes.
create or replace function name_account_of_link() returns trigger
language plpgsql as $$
begin
  new.account_id := (select account_id from credentials where id = new.credential_id);
  return new;
end
$$;

-- Who writes one of the release before does not name the account.
alter table link_sessions add column account_id uuid;
create trigger link_names_account before insert on link_sessions for each row execute function name_account_of_link();
update link_sessions set account_id = (select account_id from credentials where id = credential_id);
create index link_sessions_of_account on link_sessions (account_id, credential_id);

-- What was charged, credited and recorded is never changed. The label of an end user is the exception: it can be the name of a person, and is erased when
-- the workspace is closed. It can only be taken away, and with it nothing else.
create or replace function refuse_change() returns trigger
language plpgsql as $$
begin
  if tg_op = 'UPDATE' and tg_table_name ~ '^(entries|charges)' then
    if new.end_user_label is null and to_jsonb(new) - 'end_user_label' = to_jsonb(old) - 'end_user_label' then
      return new;
    end if;
  end if;
  raise exception '% are immutable: enter a correction that points at the row', tg_table_name;
end
$$;
