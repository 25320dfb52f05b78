-- Accounts, their money, and everything that a call touches. All of it belongs to one account and is written only by
-- who holds that account's row lock. Amounts are nano-USD.

create table accounts (
  id uuid primary key,
  mode text not null check (mode in ('live', 'test')),
  active boolean not null default true,
  credited bigint not null default 0 check (credited >= 0),
  -- What was paid in all, less what was reversed.
  paid bigint not null default 0 check (paid >= 0),
  -- Arises only from a reversed payment, and suspends the account until it is paid.
  debt bigint not null default 0 check (debt >= 0),
  charged bigint not null default 0 check (charged >= 0),
  held bigint not null default 0 check (held >= 0),
  -- What is left of promotional credit: a part of the account's own money that is not spent yet, and spent first.
  promo bigint not null default 0 check (promo >= 0),
  -- The part of it that has expired while calls held it. It is taken when they release it.
  lapsed bigint not null default 0 check (lapsed between 0 and promo),
  created_at timestamptz not null default clock_timestamp(),
  -- The promise: nobody spends more than they have. PostgreSQL itself refuses a row that breaks it.
  constraint no_overspend check (charged + held <= credited + debt),
  constraint debt_is_paid_first check (debt = 0 or charged + held = credited + debt),
  constraint promo_is_not_spent check (promo <= greatest(0, credited - charged)),
  constraint lapsed_is_held check (lapsed <= held)
) with (fillfactor = 60);

-- Whoever may spend an account's money: an API key, or a grant to an agent.
create table credentials (
  id uuid primary key,
  account_id uuid not null references accounts,
  active boolean not null default true
);

create index credentials_of_account on credentials (account_id);

-- A ceiling beside the balance: a key's budget or an agent's mandate. Its period never changes; another period is
-- another allowance.
create table allowances (
  id uuid primary key,
  account_id uuid not null references accounts,
  period text not null check (period in ('day', 'month', 'total')),
  amount bigint not null check (amount >= 0)
);

create index allowances_of_account on allowances (account_id);

create table allowance_periods (
  allowance_id uuid not null,
  starts_at timestamptz not null,
  -- The allowance in force in this period: lowering it takes effect as the larger of the new one and what is spoken for.
  amount bigint not null,
  charged bigint not null default 0 check (charged >= 0),
  held bigint not null default 0 check (held >= 0),
  primary key (allowance_id, starts_at),
  constraint no_overspend check (charged + held <= amount)
) with (fillfactor = 60);

-- Stable, as date_trunc is: declared immutable it would not be inlined.
create function period_start(period text, at timestamptz) returns timestamptz
language sql stable parallel safe
return case period
  when 'day' then date_trunc('day', at, 'UTC')
  when 'month' then date_trunc('month', at, 'UTC')
  else timestamptz '2000-01-01 00:00:00+00'
end;

-- Money that is spoken for: durable before the upstream is asked, gone when the call has ended.
create table holds (
  id uuid primary key,
  account_id uuid not null,
  credential_id uuid not null,
  -- The process that runs the call.
  owner_id uuid not null,
  operation text not null,
  amount bigint not null check (amount >= 0),
  -- The prices that settlement will use, as they were resolved when the call began.
  terms text not null,
  allowances uuid[] not null,
  -- The limit groups whose windows counted this call's tokens by estimate.
  token_groups text[] not null,
  tokens_estimated bigint not null,
  -- Whether there are claims to end with it.
  claims boolean not null,
  begun_at timestamptz not null,
  -- Since when nobody runs the call any more, so that nobody knows whether its upstream was asked.
  unsettled_at timestamptz
) with (fillfactor = 70);

create index holds_of_owner on holds (owner_id);
create index unsettled_holds on holds (unsettled_at) where unsettled_at is not null;

-- How a call ended: one row an id, ever. A row of an id that never held anything is a tombstone: a hold that arrives
-- late meets it and is refused.
create table charges (
  id uuid not null,
  account_id uuid not null,
  credential_id uuid,
  operation text,
  outcome text not null check (outcome in ('posted', 'voided')),
  -- What was held for it: a charge never exceeds it, whoever settles.
  held bigint not null,
  amount bigint not null check (amount between 0 and held),
  -- The part of the amount that promotional credit paid.
  promo bigint not null check (promo between 0 and amount),
  -- What was used beyond the hold: the operator's loss, never the customer's.
  overrun bigint not null check (overrun >= 0),
  -- Evidence times published price.
  value bigint not null,
  -- What the upstream charges the operator.
  upstream_cost bigint not null,
  executed boolean not null,
  failed boolean not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_write_tokens bigint not null,
  allowances uuid[] not null,
  begun_at timestamptz,
  ended_at timestamptz not null,
  primary key (id)
) partition by range (id);

-- For the usage report, which reads the charges of the hours that its window cuts.
create index charges_of_credential on charges (credential_id, ended_at);

-- The lowest UUIDv7 of a moment. Charges are partitioned by the day that their id carries, so that an id has one place
-- whenever it is settled.
create function first_id_at(at timestamptz) returns uuid
language sql immutable parallel safe
return (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid;

-- Credits and corrections: what changed an account's sums beside holds and charges. An entry is never changed; a
-- correction points at what it corrects. With the charges, the columns add up to the account's.
create table entries (
  id uuid primary key,
  account_id uuid not null references accounts,
  kind text not null check (kind in (
    'payment', 'payment_reversal', 'dispute', 'dispute_won', 'promotion', 'expiry',
    'charge_reversal', 'forgiveness', 'debt_payment', 'late_settlement')),
  credited bigint not null default 0,
  charged bigint not null default 0,
  promo bigint not null default 0,
  debt bigint not null default 0,
  -- The operator's loss, beside that of the charges.
  overrun bigint not null default 0,
  -- Whose usage report it corrects, where it gives a charge back.
  credential_id uuid,
  corrects uuid,
  entered_at timestamptz not null default clock_timestamp()
);

create index entries_of_account on entries (account_id);
create index entries_by_corrected on entries (corrects) where corrects is not null;
create index entries_of_credential on entries (credential_id, entered_at) where credential_id is not null;

-- What is left of each grant of promotional credit. Calls change the account's sum alone; it is spread over the grants,
-- those that expire first before the others, whenever one of them is made, expires or is given back.
create table promotions (
  -- The grant's entry.
  id uuid primary key,
  account_id uuid not null references accounts,
  remaining bigint not null check (remaining >= 0),
  expires_at timestamptz not null
);

create index promotions_of_account on promotions (account_id, expires_at);
create index promotions_by_expiry on promotions (expires_at) where remaining > 0;

create function refuse_change() returns trigger
language plpgsql as $$
begin
  raise exception '% are immutable: enter a correction that points at the row', tg_table_name;
end
$$;

create trigger entries_are_immutable before update or delete on entries
for each row execute function refuse_change();

create trigger charges_are_immutable before update or delete on charges
for each row execute function refuse_change();

-- A place in a set of at most N: an idempotency key or a quote (N = 1, kept after a charged call), a slot (ends with
-- its call, or with the process that runs it). kept_until is null while the call is open: nothing expires then.
create table claims (
  credential_id uuid not null,
  scope text not null,
  key text not null,
  call_id uuid not null,
  fingerprint text not null,
  keep_seconds integer not null check (keep_seconds >= 0),
  ends_with_owner boolean not null,
  kept_until timestamptz,
  primary key (credential_id, scope, key, call_id)
);

create index claims_of_call on claims (call_id);

-- Fixed windows, begun by a credential's first request. A crash of PostgreSQL forgets them, which admits one more
-- allowance at the most; nothing that is worth a write to the log.
create unlogged table windows (
  credential_id uuid not null,
  limit_group text not null,
  started_at timestamptz not null,
  requests integer not null,
  tokens bigint not null,
  primary key (credential_id, limit_group)
) with (fillfactor = 50);

-- Usage by credential and hour of settlement, booked by the statement that settles: the report equals the ledger.
create table usage_hours (
  credential_id uuid not null,
  hour timestamptz not null,
  account_id uuid not null,
  requests bigint not null,
  failed_requests bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_write_tokens bigint not null,
  value bigint not null,
  charged bigint not null,
  primary key (credential_id, hour)
) with (fillfactor = 60);

create index usage_hours_of_account on usage_hours (account_id, hour);
