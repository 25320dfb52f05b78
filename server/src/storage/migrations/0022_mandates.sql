-- What a person allows a client to spend, beside the allowance, the rate and the scopes that a grant has already: a mandate.
alter table grants
  -- The most that a call may cost without the person being asked; null for no limit beside the amount.
  add column call_limit bigint check (call_limit >= 0),
  -- Whether the person is asked before each call of a kind that is marked as costly.
  add column asks_high_cost boolean not null default false,
  add column paused_at timestamptz,
  -- What the allowance has again when it goes on: while it is paused the allowance is nothing, so that BEGIN refuses by it.
  add column paused_amount bigint check (paused_amount >= 0),
  -- What the person was told of it last: 80 and 100 are per cent of the amount; after a raise it begins again.
  add column noticed smallint not null default 0 check (noticed in (0, 80, 100)),
  add constraint a_paused_amount_is_of_a_pause check (paused_amount is null or paused_at is not null);

-- Those of which a person may still have to be told something.
create index grants_to_notice on grants (id) where noticed < 100 and revoked_at is null and allowance_id is not null;

-- One call that waits for a person, or that a person has decided about. It is good for that call alone: by the grant, the operation, its
-- arguments and the most that it may cost. That it is used once, a claim sees to, in the transaction of the hold.
create table approvals (
  id uuid primary key,
  grant_id uuid not null references grants,
  operation text not null check (length(operation) between 1 and 200),
  -- SHA-256 of the operation, its model and its arguments, however they are written.
  digest bytea not null check (length(digest) = 32),
  -- The arguments as the person reads them, or their beginning, sealed; null once nobody has to read them any more.
  shown bytea check (length(shown) <= 100000),
  shown_whole boolean not null,
  -- The most that the call may cost, as it was asked for.
  most bigint not null check (most >= 0),
  reason text not null check (reason in ('call_limit', 'high_cost')),
  -- The call that was refused, by its request id.
  request_id uuid not null,
  asked_at timestamptz not null default clock_timestamp(),
  -- Until then it can be decided, and used.
  expires_at timestamptz not null,
  decided_at timestamptz,
  is_allowed boolean,
  -- The call that has it, and since when: it is for one execution, whatever becomes of that. A call that nobody was asked for gives it back.
  used_by uuid,
  spent_at timestamptz,
  constraint used_by_one check ((used_by is null) = (spent_at is null)),
  constraint decided_one_way check ((decided_at is null) = (is_allowed is null))
);

create index approvals_of_grant on approvals (grant_id, digest, asked_at);
create index approvals_by_expiry on approvals (expires_at);
-- Those whose arguments have to be forgotten when their time is over.
create index approvals_to_empty on approvals (expires_at) where shown is not null;
