-- The account API: writes that are made once, requests for a higher limit, and lists in the order of their pages.

-- What a member changed by the account API, by the idempotency key of the request, for a day. It is written in the transaction of the change. The answer never
-- has a secret: who asks again for a key that was made is told everything but that.
create table account_writes (
  person_id uuid not null references people on delete cascade,
  key text not null check (length(key) between 1 and 255),
  -- SHA-256 of method, path, mode and body.
  fingerprint bytea not null check (length(fingerprint) = 32),
  request_id uuid not null,
  -- Null only within the transaction that makes the change.
  status smallint,
  answer jsonb,
  etag text,
  written_at timestamptz not null default clock_timestamp(),
  primary key (person_id, key)
);

create index account_writes_by_time on account_writes (written_at);

-- A workspace asks for higher limits, and an operator decides.
create table quota_requests (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  -- Who asked; null for somebody who is no more.
  person_id uuid references people on delete set null,
  requests_per_minute integer not null check (requests_per_minute > 0),
  tokens_per_minute bigint not null check (tokens_per_minute > 0),
  -- Models or operations that it is for, by their names.
  targets text[] not null check (cardinality(targets) between 1 and 50),
  use_case text not null check (length(use_case) between 1 and 2000),
  state text not null default 'open' check (state in ('open', 'approved', 'refused', 'withdrawn')),
  note text check (length(note) <= 2000),
  -- What was granted, where it was approved.
  granted_requests_per_minute integer check (granted_requests_per_minute > 0),
  granted_tokens_per_minute bigint check (granted_tokens_per_minute > 0),
  granted_concurrency integer check (granted_concurrency > 0),
  created_at timestamptz not null default clock_timestamp(),
  decided_at timestamptz,
  constraint decided_is_final check ((decided_at is null) = (state = 'open')),
  constraint granted_where_approved check ((granted_requests_per_minute is null) = (state <> 'approved'))
);

-- One at a time, so that nobody fills the operator's list.
create unique index quota_requests_open on quota_requests (workspace_id) where state = 'open';
create index quota_requests_of_workspace on quota_requests (workspace_id, id);
create index quota_requests_by_state on quota_requests (state, id);
create index quota_requests_of_person on quota_requests (person_id);

-- The grant whose client was told the secret, because it created or rotated the key; and the secret before the previous one, which works until its own
-- overlap is over: whoever missed the answer to a rotation rotates again, and must not end the secret that is in use.
alter table api_keys
  add column grant_id uuid,
  add column older_hash bytea check (length(older_hash) = 32),
  add column older_until timestamptz,
  add constraint older_is_whole check ((older_hash is null) = (older_until is null));
create index api_keys_of_grant on api_keys (grant_id) where grant_id is not null;

-- A page of a list is a range of an index.
create index credentials_in_order on credentials (account_id, id);
drop index credentials_of_account;
create index api_keys_in_order on api_keys (workspace_id, id) where revoked_at is null;
create index api_keys_expiring on api_keys (workspace_id, id) where revoked_at is null and expires_at is not null;
create index api_keys_of_member on api_keys (member_id, id) where member_id is not null;
create index api_keys_revoked on api_keys (workspace_id, id) where revoked_at is not null;
create index entries_of_account_in_time on entries (account_id, entered_at, id);
create index tasks_of_account on tasks (account_id, id);
