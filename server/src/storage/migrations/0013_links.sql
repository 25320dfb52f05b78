-- Platform accounts that users have linked to a key, so that calls of it may write there.

-- How we are known to a platform that lets its users decide: our client's id there, and where users are asked. The
-- client's secret is the upstream's credential.
alter table upstreams
  add column client_id text check (length(client_id) between 1 and 200),
  add column authorize_url text check (length(authorize_url) between 1 and 2000),
  add constraint clients_ask_somewhere check ((client_id is null) = (authorize_url is null));

-- A link under way. A key has one at the most: another one takes its place, so that of two pages only the newer works.
create table link_attempts (
  credential_id uuid primary key references credentials,
  upstream_id uuid not null,
  -- Of the state that the platform brings back: it has 256 bits of randomness.
  state_hash bytea not null unique check (length(state_hash) = 32),
  -- The secret half of the proof that who exchanges the code has asked for it. Sealed as this key's.
  verifier bytea not null,
  scopes text[] not null,
  redirect_uri text not null,
  expires_at timestamptz not null,
  -- It works once, whatever comes of it.
  used_at timestamptz
);

-- What a platform has given us for a user. A key has one at the most.
create table link_sessions (
  credential_id uuid primary key references credentials,
  id uuid not null unique,
  upstream_id uuid not null,
  -- Who it is there; null where the scopes did not let us ask.
  user_id text check (user_id ~ '^[0-9]{1,30}$'),
  username text check (length(username) <= 200),
  scopes text[] not null,
  -- The key of the tokens, sealed with the master key as this credential's; and the tokens, sealed with that key.
  wrapped_key bytea not null,
  tokens bytea not null,
  access_until timestamptz not null,
  can_refresh boolean not null,
  -- Counts refreshes. Who wants to refresh names the version that it has seen, and only one is let.
  version integer not null default 1,
  -- Since when somebody is at it. A refresh token works once: what became of one whose user died with it, nobody knows.
  refreshing_since timestamptz,
  -- Why it can't be used any more, until the user links again.
  -- `ending`: its owner has ended it, and the platform has not been told yet.
  ended text check (ended in ('expired', 'revoked', 'lost', 'ending')),
  -- For the page that the user sees at the end: it can be undone there for a while.
  undo_hash bytea check (length(undo_hash) = 32),
  undo_until timestamptz,
  linked_at timestamptz not null default clock_timestamp(),
  refreshed_at timestamptz
);

create index link_sessions_ending on link_sessions (credential_id) where ended = 'ending';
create index link_sessions_by_undo on link_sessions (undo_hash) where undo_hash is not null;
