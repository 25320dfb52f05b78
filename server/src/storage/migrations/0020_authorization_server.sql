-- Clients that registered themselves. Nothing in a registration is proven, so one is forgotten after a day unless a person allowed it.
create table oauth_clients (
  id text primary key check (length(id) between 1 and 200),
  -- As the client gave it, within bounds; of a client's secret only the SHA-256.
  metadata jsonb not null,
  -- SHA-256 of the network that it came from, by which registrations are counted and bounded.
  network bytea not null check (length(network) = 32),
  created_at timestamptz not null default clock_timestamp(),
  -- When a person first allowed it.
  confirmed_at timestamptz,
  -- To the day: when it last got a token.
  used_at timestamptz not null default clock_timestamp()
);

create index oauth_clients_unconfirmed on oauth_clients (created_at) where confirmed_at is null;
create index oauth_clients_unconfirmed_of_network on oauth_clients (network, created_at) where confirmed_at is null;
create index oauth_clients_by_use on oauth_clients (used_at) where confirmed_at is not null;

-- The last good document of a client whose id is the address of one, for when its host does not answer.
create table oauth_documents (
  -- SHA-256 of the address.
  hash bytea primary key check (length(hash) = 32),
  -- Of what the document says, what is known here.
  metadata jsonb not null,
  fetched_at timestamptz not null default clock_timestamp(),
  -- When a person first allowed its client: others are forgotten soon.
  confirmed_at timestamptz
);

create index oauth_documents_unconfirmed on oauth_documents (fetched_at) where confirmed_at is null;

-- What the authorization server remembers between two requests: codes, refresh tokens, requests that wait for a person.
-- A row is found by the SHA-256 of the value that a client or a browser brings; the value itself is nowhere.
create table oauth_states (
  kind text not null check (length(kind) between 1 and 60),
  hash bytea not null check (length(hash) = 32),
  payload jsonb not null,
  grant_id uuid,
  -- SHA-256 of what a person types for a device.
  user_code bytea check (length(user_code) = 32),
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  consumed_at timestamptz,
  -- How often it was taken: a refresh token may be taken again within its grace.
  taken integer not null default 0 check (taken >= 0),
  -- SHA-256 of the network of a stranger who asked for it, by which such rows are bounded; null for what a grant or a person bounds.
  network bytea check (length(network) = 32),
  primary key (kind, hash)
);

create unique index oauth_states_by_user_code on oauth_states (user_code) where user_code is not null;
create index oauth_states_of_grant on oauth_states (grant_id) where grant_id is not null;
create index oauth_states_of_grant_untaken on oauth_states (grant_id, kind, created_at) where grant_id is not null and consumed_at is null;
create index oauth_states_of_strangers on oauth_states (kind, network, created_at) where network is not null;
create index oauth_states_by_expiry on oauth_states (expires_at);

-- Keys that sign what we say of people, sealed under the master key. The newest is published before it signs.
create table signing_keys (
  id uuid primary key,
  sealed bytea not null,
  created_at timestamptz not null default clock_timestamp()
);
