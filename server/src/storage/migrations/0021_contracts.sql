-- Contracts that were served, so that whoever was told of one by its hash can read it after the next release, and from every process
-- while two releases run side by side. Rows come and go by time alone: who last served one says so once an hour.
create table contracts (
  content_hash text primary key check (content_hash = encode(sha256(bytes), 'hex')),
  docs_revision text not null check (docs_revision ~ '^[0-9a-f]{64}$'),
  bytes bytea not null,
  first_served_at timestamptz not null default clock_timestamp(),
  last_served_at timestamptz not null default clock_timestamp()
);

-- Read whole or not at all; nothing is gained by looking for a smaller form of it each hour.
alter table contracts alter column bytes set storage external;
