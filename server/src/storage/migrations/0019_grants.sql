-- A grant: a person lets a client act for a workspace. It is a credential as a key is, so that limits, windows, links, idempotency,
-- requests and refusals hang on it alike. It has no secret of its own: access tokens are issued under it.
create table grants (
  id uuid primary key references credentials,
  workspace_id uuid not null references workspaces,
  person_id uuid not null references people,
  -- A client by the id under which it was registered, or the URL of its document.
  client_id text not null check (length(client_id) between 1 and 2048),
  client_name text not null check (length(client_name) between 1 and 200),
  -- The resources that tokens may be issued for, and the scopes that they may have.
  audiences text[] not null check (cardinality(audiences) between 1 and 10),
  oauth_scopes text[] not null check (cardinality(oauth_scopes) between 1 and 20),
  -- What it may spend. Without it, nothing: a key without a budget spends what the account has, and a grant does not.
  allowance_id uuid references allowances,
  -- The same terms as a key's.
  requests_per_minute integer check (requests_per_minute > 0),
  tokens_per_minute bigint check (tokens_per_minute > 0),
  concurrency integer check (concurrency > 0),
  scopes text[],
  allowed_networks cidr[] check (cardinality(allowed_networks) between 1 and 50),
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz,
  revoked_at timestamptz
);

create index grants_of_workspace on grants (workspace_id, id);
create index grants_of_person on grants (person_id, id);
-- An id may be longer than an ordered index takes.
create index grants_of_client on grants using hash (client_id);

-- Of an access token only the SHA-256 is stored: it has 256 bits of randomness. A row is deleted when its token is revoked, when its
-- grant is, and some time after it has expired.
create table access_tokens (
  hash bytea primary key check (length(hash) = 32),
  grant_id uuid not null references grants,
  audience text not null check (length(audience) between 1 and 2048),
  oauth_scopes text[] not null,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null
);

create index access_tokens_of_grant on access_tokens (grant_id, created_at);
create index access_tokens_by_expiry on access_tokens (expires_at);

-- To which workspace something belongs: itself, one of its accounts, one of its keys or one of its grants. Null for what is nobody's.
create or replace function workspace_of(one uuid) returns uuid
language sql stable as $$
  select coalesce(
    (select id from workspaces where id = one or live_account_id = one or test_account_id = one),
    (select workspace_id from api_keys where id = one),
    (select workspace_id from grants where id = one)
  )
$$;
