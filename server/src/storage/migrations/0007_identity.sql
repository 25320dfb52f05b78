-- Who may call. A workspace is what a customer has: an account for live money and one for test money, members and keys.

-- What everybody on a plan pays, as a multiple of the published price.
create table plans (
  id text primary key,
  numerator bigint not null check (numerator >= 0),
  denominator bigint not null check (denominator > 0)
);

insert into plans values ('standard', 1, 1);

create table workspaces (
  id uuid primary key,
  name text not null check (length(name) between 1 and 200),
  -- Where it lives among cells; its keys carry it.
  shard smallint not null check (shard between 0 and 4095),
  live_account_id uuid not null unique references accounts,
  test_account_id uuid not null unique references accounts,
  plan text not null default 'standard' references plans,
  -- What an operator granted beyond what the paid total earns.
  tier_granted text check (tier_granted in ('growth', 'enterprise')),
  requests_per_minute integer check (requests_per_minute > 0),
  tokens_per_minute bigint check (tokens_per_minute > 0),
  concurrency integer check (concurrency > 0),
  created_at timestamptz not null default clock_timestamp(),
  constraint enterprise_limits_are_its_own check (
    (tier_granted is not distinct from 'enterprise') = (requests_per_minute is not null)
    and (requests_per_minute is null) = (tokens_per_minute is null) and (requests_per_minute is null) = (concurrency is null))
);

create table members (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  email text not null check (length(email) between 3 and 320 and email = lower(email)),
  role text not null check (role in ('owner', 'member')),
  created_at timestamptz not null default clock_timestamp(),
  unique (workspace_id, email)
);

-- A key is a credential with a secret. Of the secret only the SHA-256 of the whole key is stored: it has 256 bits of
-- randomness, so there is nothing that a slow hash would protect.
create table api_keys (
  id uuid primary key references credentials,
  workspace_id uuid not null references workspaces,
  name text not null check (length(name) between 1 and 200),
  hash bytea not null check (length(hash) = 32),
  -- The secret before the last rotation, good until the overlap is over.
  previous_hash bytea check (length(previous_hash) = 32),
  previous_until timestamptz,
  expires_at timestamptz,
  -- Operations and groups that it may use; null for all.
  scopes text[],
  -- Its budget.
  allowance_id uuid references allowances,
  created_at timestamptz not null default clock_timestamp(),
  revoked_at timestamptz
);

create index api_keys_of_workspace on api_keys (workspace_id);

-- Who changed what. Never a secret, nor anything that a secret could be made from.
create table audit (
  id uuid primary key,
  at timestamptz not null default clock_timestamp(),
  actor text not null,
  action text not null,
  workspace_id uuid not null references workspaces,
  subject uuid not null,
  detail jsonb not null default '{}'
);

create index audit_of_workspace on audit (workspace_id, at);

-- A top-up changes the tier, and with its own commit tells every process so. Beginning and ending calls set neither column,
-- so they never come here.
create function tell_workspace() returns trigger
language plpgsql as $$
begin
  perform record_change('workspace', id::text) from workspaces where live_account_id = new.id or test_account_id = new.id;
  return null;
end
$$;

create trigger paid_total_changes_tier after update of paid, active on accounts
for each row when (old.paid <> new.paid or old.active <> new.active) execute function tell_workspace();

-- Lowering an allowance takes effect as what is spoken for already, where that is more.
create function change_allowance(allowance uuid, new_amount bigint) returns void
language plpgsql volatile as $$
begin
  perform 1 from accounts where id = (select account_id from allowances where id = allowance) for no key update;
  update allowances set amount = new_amount where id = allowance;
  update allowance_periods set amount = greatest(new_amount, charged + held)
  where allowance_id = allowance and starts_at = (select period_start(period, clock_timestamp()) from allowances where id = allowance);
end
$$;
