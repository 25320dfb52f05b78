-- The tables of 0.2.0. What its functions do is in functions/: they are replaced after the last migration that a database needs. Those
-- that tables name are only named here.

create function refuse_change() returns trigger language plpgsql as $$ begin return null; end $$;
create function tell_workspace() returns trigger language plpgsql as $$ begin return null; end $$;
create function tell_upstream() returns trigger language plpgsql as $$ begin return null; end $$;
create function tell_model() returns trigger language plpgsql as $$ begin return null; end $$;
create function tell_models() returns trigger language plpgsql as $$ begin return null; end $$;
create function name_account_of_link() returns trigger language plpgsql as $$ begin return null; end $$;
create function forget_quota() returns trigger language plpgsql as $$ begin return null; end $$;
create function are_picture_prices(prices jsonb) returns boolean language sql immutable return true;
create function are_video_prices(prices jsonb) returns boolean language sql immutable return true;

-- What changed, for the caches of every process. Rows are written in the transaction of the change itself and are read
-- by (transaction_id, id): ids alone are taken before commit, so a lower one can appear after a higher one was read.

create table change_log (
  id bigint generated always as identity primary key,
  transaction_id xid8 not null default pg_current_xact_id(),
  topic text not null check (length(topic) between 1 and 64),
  key text not null check (length(key) <= 512),
  changed_at timestamptz not null default clock_timestamp()
);

create index change_log_in_order on change_log (transaction_id, id);

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

create trigger paid_total_changes_tier after update of paid, active on accounts
for each row when (old.paid <> new.paid or old.active <> new.active) execute function tell_workspace();

-- Whoever may spend an account's money: an API key, or a grant to an agent. What it has of its own stands in its row, so that one
-- statement can judge and write it all (docs/decisions/0048): the window of all its requests, how many calls it has at once, and the
-- running period of its own budget.
create table credentials (
  id uuid primary key,
  account_id uuid not null references accounts,
  active boolean not null default true,
  -- The window of the limit group "all"; null where there was none.
  all_started_at timestamptz,
  all_requests integer not null default 0,
  all_tokens bigint not null default 0,
  -- Open holds that say at_once.
  calls_at_once integer not null default 0,
  -- A period of its own budget: null, or that one stands here and not among those that are kept.
  budget_id uuid,
  budget_starts_at timestamptz,
  budget_ends_at timestamptz,
  -- The amount of the allowance, below which that of the period may not be lowered while it is spoken for.
  budget_ceiling bigint,
  budget_amount bigint not null default 0,
  budget_charged bigint not null default 0,
  budget_held bigint not null default 0,
  constraint no_overspend check (budget_charged + budget_held <= budget_amount),
  constraint budget_is_sound check (
    budget_charged >= 0 and budget_held >= 0 and num_nulls(budget_id, budget_starts_at, budget_ends_at, budget_ceiling) in (0, 4)
  )
) with (fillfactor = 50);

-- A page of a list is a range of an index.
create index credentials_in_order on credentials (account_id, id);
create index credentials_active on credentials (account_id, id) where active;
create index credentials_ended on credentials (account_id, id) where not active;
create unique index credentials_of_budget on credentials (budget_id) where budget_id is not null;

-- A ceiling beside the balance: a key's budget or an agent's mandate. Its period never changes; another period is
-- another allowance.
create table allowances (
  id uuid primary key,
  account_id uuid not null references accounts,
  period text not null,
  amount bigint not null check (amount >= 0),
  -- The budget whose amount it has, which is read there and not here; null for that of a key or of a grant. Where there is no such budget, it has
  -- its own.
  follows uuid,
  -- The credential in whose row the running period of an allowance stands, or stood last.
  credential_id uuid,
  constraint allowances_period_check check (period in ('day', 'week', 'month', 'total'))
);

create index allowances_of_account on allowances (account_id);

create table kept_periods (
  allowance_id uuid not null,
  starts_at timestamptz not null,
  -- The allowance in force in this period: lowering it takes effect as the larger of the new one and what is spoken for.
  amount bigint not null,
  charged bigint not null default 0 check (charged >= 0),
  held bigint not null default 0 check (held >= 0),
  primary key (allowance_id, starts_at),
  constraint no_overspend check (charged + held <= amount)
) with (fillfactor = 60);

-- Money that is spoken for: durable before the upstream is asked, gone when the call has ended.
create table holds (
  id uuid primary key,
  account_id uuid not null,
  credential_id uuid not null,
  -- The process that runs the call.
  owner_id uuid,
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
  unsettled_at timestamptz,
  -- What a call holds can grow while it runs. Of the tokens that it has reserved, those of windows that were over when it grew, and when
  -- it last went into a new window; null for the one that it was begun in. Calls that never grow have neither.
  tokens_moved bigint not null default 0 check (tokens_moved between 0 and tokens_estimated),
  reserved_at timestamptz,
  -- The model that was asked for.
  asked_model text,
  end_user uuid,
  -- Short, for people.
  end_user_label text,
  -- name=value, at most 8, in the order of their names.
  tags text[],
  -- Whether it has a place; never true of one that nobody runs any more.
  at_once boolean not null default false,
  -- What the edge refuses, whoever writes.
  constraint short_attribution check ( length(end_user_label) <= 64 and (tags is null or cardinality(tags) <= 8 and length(tags::text) <= 1000) )
) with (fillfactor = 70);

create index holds_of_owner on holds (owner_id);
create index unsettled_holds on holds (unsettled_at) where unsettled_at is not null;
-- Of entries that are merged none is known as dead before all of them are: one long call would keep those of a hundred short ones.
create index holds_at_once on holds (credential_id) with (deduplicate_items = off) where at_once;

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
  model text,
  route text,
  end_user uuid,
  end_user_label text,
  tags text[],
  primary key (id)
) partition by range (id);

-- For the usage report, which reads the charges of the hours that its window cuts.
create index charges_of_credential on charges (credential_id, ended_at);
create trigger charges_are_immutable before update or delete on charges
for each row execute function refuse_change();
-- For lists of an account's calls.
create index charges_of_account on charges (account_id, ended_at);

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
  entered_at timestamptz not null default clock_timestamp(),
  -- Of what gives a charge back: as the charge has it.
  operation text,
  model text,
  route text,
  end_user uuid,
  end_user_label text,
  tags text[]
);

create index entries_of_account on entries (account_id);
create index entries_by_corrected on entries (corrects) where corrects is not null;
create index entries_of_credential on entries (credential_id, entered_at) where credential_id is not null;
create trigger entries_are_immutable before update or delete on entries
for each row execute function refuse_change();
create index entries_of_account_in_time on entries (account_id, entered_at, id);

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
create unlogged table group_windows (
  credential_id uuid not null,
  limit_group text not null,
  started_at timestamptz not null,
  requests integer not null,
  tokens bigint not null,
  primary key (credential_id, limit_group)
) with (fillfactor = 50);

-- Who runs the open calls. A process renews its lease every few seconds; the holds of one whose lease has ended are
-- orphans: nobody knows any more whether their upstream was asked. Their money stays held until evidence, an operator or
-- the deadline resolves them.

create table owners (
  id uuid primary key,
  lease_until timestamptz not null,
  -- By when it is to be renewed: half of the lease. Who is later could not reach PostgreSQL for a while.
  renew_by timestamptz not null,
  -- Since when it was always renewed by then.
  held_since timestamptz not null
) with (fillfactor = 50);

-- What the dropped days had charged, so that the ledger still adds up.
create table dropped_charges (
  account_id uuid primary key,
  amount bigint not null,
  promo bigint not null
);

create table dropped_allowances (
  allowance_id uuid not null,
  starts_at timestamptz not null,
  amount bigint not null,
  primary key (allowance_id, starts_at)
);

create table dropped_days (
  day date primary key
);

-- Who may call. A workspace is what a customer has: an account for live money and one for test money, members and keys.

-- What everybody on a plan pays, as a multiple of the published price.
create table plans (
  id text primary key,
  numerator bigint not null check (numerator >= 0),
  denominator bigint not null check (denominator > 0)
);

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

-- People: who signs in, and of which workspaces they are members. Whatever somebody could sign in with is kept as a hash or sealed.
create table people (
  id uuid primary key,
  email text not null unique check (length(email) between 3 and 320 and email = lower(email)),
  name text not null check (length(name) between 1 and 100),
  -- Argon2id in PHC form. Null before the address is verified, and for who signs in elsewhere alone.
  password text check (length(password) <= 200),
  -- Null: somebody said that it is theirs. Such a person can do nothing, and is forgotten after a day.
  verified_at timestamptz,
  -- The key of the second factor, sealed, and since when it counts: null while it is being turned on.
  totp bytea check (length(totp) <= 200),
  totp_since timestamptz,
  -- The last step of time whose code was taken: no code works twice.
  totp_used_step bigint not null default 0,
  created_at timestamptz not null default clock_timestamp(),
  -- Who belonged only to workspaces that are closed. The row stays, because grants and the credit for signing up point at it; nothing in it tells who it was.
  erased_at timestamptz,
  constraint second_factor_has_a_key check (totp_since is null or totp is not null),
  constraint unverified_people_have_no_password check (verified_at is not null or password is null)
);

create index people_unverified on people (created_at) where verified_at is null;

-- By whom else a person is known.
create table person_identities (
  issuer text not null check (length(issuer) between 1 and 500),
  subject text not null check (length(subject) between 1 and 255),
  person_id uuid not null references people,
  created_at timestamptz not null default clock_timestamp(),
  primary key (issuer, subject)
);

create index person_identities_of_person on person_identities (person_id);

-- Who was given credit for signing up: once a mailbox, however its address is written. Kept for good.
create table sign_up_credits (
  -- SHA-256 of the folded mailbox.
  mailbox bytea primary key check (length(mailbox) = 32),
  person_id uuid not null references people,
  at timestamptz not null default clock_timestamp()
);

-- Whoever deletes a person has every reference looked up.
create index sign_up_credits_of_person on sign_up_credits (person_id);

create table browser_sessions (
  id uuid primary key,
  -- SHA-256 of what the browser has.
  hash bytea not null unique check (length(hash) = 32),
  person_id uuid not null references people,
  created_at timestamptz not null default clock_timestamp(),
  seen_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  address text not null check (length(address) <= 64),
  agent text not null check (length(agent) <= 200),
  -- False while the second factor is waited for.
  is_complete boolean not null,
  second_factor_at timestamptz,
  ended_at timestamptz
);

create index browser_sessions_of_person on browser_sessions (person_id);
create index browser_sessions_by_expiry on browser_sessions (expires_at);

-- Browsers that are not asked for the second factor again for a while.
create table remembered_browsers (
  hash bytea primary key check (length(hash) = 32),
  person_id uuid not null references people,
  expires_at timestamptz not null
);

create index remembered_browsers_of_person on remembered_browsers (person_id);
create index remembered_browsers_by_expiry on remembered_browsers (expires_at);

-- Of each only an HMAC with the key of the second factor, which is sealed: they are too short for a hash alone.
create table recovery_codes (
  person_id uuid not null references people,
  hash bytea not null check (length(hash) = 32),
  used_at timestamptz,
  primary key (person_id, hash)
);

-- Links in mails, which work once.
create table mailed_links (
  hash bytea primary key check (length(hash) = 32),
  kind text not null check (kind in ('verify', 'reset')),
  -- A person; null where the address is unknown, or needs no such link. The row is written all the same, so that nobody can tell: for
  -- that reason it is no reference either, which would be looked up where there is one.
  person_id uuid,
  -- What was typed at the sign-up that this link confirms. It counts with this link alone: somebody else who signs up with the same
  -- address must not choose the password of who owns it.
  name text check (length(name) between 1 and 100),
  password text check (length(password) <= 200),
  -- In which browser, as SHA-256 of what it has of us. Whoever confirms in another one chooses a password then.
  browser bytea check (length(browser) = 32),
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  used_at timestamptz
);

create index mailed_links_of_person on mailed_links (person_id, kind);
create index mailed_links_by_expiry on mailed_links (expires_at);

-- How often something that can be guessed was tried, within windows that begin with their first attempt. What is lost with it when
-- PostgreSQL dies is a window.
create unlogged table door_attempts (
  kind text not null check (length(kind) <= 40),
  -- SHA-256 of whom it is counted for.
  key bytea not null check (length(key) = 32),
  ends_at timestamptz not null,
  count integer not null check (count >= 0),
  primary key (kind, key)
);

create index door_attempts_by_end on door_attempts (ends_at);

create table members (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  email text not null check (length(email) between 3 and 320 and email = lower(email)),
  role text not null,
  created_at timestamptz not null default clock_timestamp(),
  -- A member whom an operator named has no person until somebody has verified the address.
  person_id uuid references people,
  unique (workspace_id, email),
  constraint members_person unique (workspace_id, person_id),
  constraint members_role_check check (role in ('owner', 'admin', 'developer', 'billing', 'viewer'))
);

create index members_of_person on members (person_id);
create index members_unclaimed on members (email) where person_id is null;

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
  revoked_at timestamptz,
  -- What a key has of its own within its tier: rates, each null where the tier's alone holds, and from where it may be used.
  requests_per_minute integer check (requests_per_minute > 0),
  tokens_per_minute bigint check (tokens_per_minute > 0),
  concurrency integer check (concurrency > 0),
  -- Null for anywhere.
  allowed_networks cidr[] check (cardinality(allowed_networks) between 1 and 50),
  -- What becomes of a stream whose caller has left, where the request itself does not say: finish has the upstream heard out, cancel
  -- gives it up where that stops its meter. Null is the default of the installation.
  on_disconnect text check (on_disconnect in ('finish', 'cancel')),
  -- What is held for a stream where the request itself does not say: full holds the most that it can cost, growing what it needs as it goes
  -- on. Null is the default of the installation.
  holding text check (holding in ('full', 'growing')),
  -- Tags that a credential's calls have whatever the request says, as name=value.
  fixed_tags text[],
  -- Whose key it is. It outlives the membership, so that the member's budget goes on bounding the key, and bounds it again when the same person
  -- comes back: the membership, the person, and the address by which a member is known before somebody signs up with it.
  member_id uuid,
  member_person uuid,
  member_email text,
  -- Budgets that it had before, of which there is one for a period: set again, they go on counting.
  former_allowances uuid[] not null default '{}',
  -- The grant whose client was told the secret, because it created or rotated the key; and the secret before the previous one, which works until its own
  -- overlap is over: whoever missed the answer to a rotation rotates again, and must not end the secret that is in use.
  grant_id uuid,
  older_hash bytea check (length(older_hash) = 32),
  older_until timestamptz,
  constraint older_is_whole check ((older_hash is null) = (older_until is null))
);

create index api_keys_of_workspace on api_keys (workspace_id);
create index api_keys_unclaimed on api_keys (member_email) where member_email is not null and member_person is null;
-- Those with a budget, of which somebody may have to be told.
create index api_keys_with_budget on api_keys (id) where allowance_id is not null and revoked_at is null;
create index api_keys_of_grant on api_keys (grant_id) where grant_id is not null;
create index api_keys_in_order on api_keys (workspace_id, id) where revoked_at is null;
create index api_keys_expiring on api_keys (workspace_id, id) where revoked_at is null and expires_at is not null;
create index api_keys_of_member on api_keys (member_id, id) where member_id is not null;
create index api_keys_revoked on api_keys (workspace_id, id) where revoked_at is not null;
-- What workspaces know of somebody who has left them, which goes when the person is erased.
create index api_keys_of_person on api_keys (member_person) where member_person is not null;
-- Those that were revoked lately, among however many.
create index api_keys_by_end on api_keys (workspace_id, revoked_at) where revoked_at is not null;

create table invitations (
  id uuid primary key,
  hash bytea not null unique check (length(hash) = 32),
  workspace_id uuid not null references workspaces,
  email text not null check (length(email) between 3 and 320 and email = lower(email)),
  role text not null check (role in ('owner', 'admin', 'developer', 'billing', 'viewer')),
  -- Null: an operator.
  invited_by uuid references people,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  decided_at timestamptz,
  decision text check (decision in ('join', 'decline', 'revoke')),
  constraint invitation_is_decided check ((decided_at is null) = (decision is null))
);

create unique index invitations_open on invitations (workspace_id, email) where decided_at is null;
create index invitations_by_expiry on invitations (expires_at);
create index invitations_of_inviter on invitations (invited_by);
create index invitations_of_address on invitations (email) where decided_at is null;

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
  revoked_at timestamptz,
  -- The most that a call may cost without the person being asked; null for no limit beside the amount.
  call_limit bigint check (call_limit >= 0),
  -- Whether the person is asked before each call of a kind that is marked as costly.
  asks_high_cost boolean not null default false,
  paused_at timestamptz,
  -- What the allowance has again when it goes on: while it is paused the allowance is nothing, so that BEGIN refuses by it.
  paused_amount bigint check (paused_amount >= 0),
  -- What the person was told of it last: 80 and 100 are per cent of the amount; after a raise it begins again.
  noticed smallint not null default 0 check (noticed in (0, 80, 100)),
  on_disconnect text check (on_disconnect in ('finish', 'cancel')),
  holding text check (holding in ('full', 'growing')),
  fixed_tags text[],
  constraint a_paused_amount_is_of_a_pause check (paused_amount is null or paused_at is not null)
);

create index grants_of_workspace on grants (workspace_id, id);
create index grants_of_person on grants (person_id, id);
-- An id may be longer than an ordered index takes.
create index grants_of_client on grants using hash (client_id);
-- Those of which a person may still have to be told something.
create index grants_to_notice on grants (id) where noticed < 100 and revoked_at is null and allowance_id is not null;

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

-- Who changed what. Never a secret, nor anything that a secret could be made from.
create table audit (
  id uuid primary key default gen_random_uuid(),
  at timestamptz not null default clock_timestamp(),
  actor text not null,
  action text not null,
  workspace_id uuid references workspaces,
  subject text not null,
  detail jsonb not null default '{}',
  -- What differs: null before something was made, null after it was removed. Never a secret, nor the hash or the seal of one.
  before jsonb,
  after jsonb,
  -- From where: the machine of a command line, the address of a request.
  origin jsonb not null default '{}',
  constraint actor_is_kind_and_name check (actor ~ '^(operator|member|worker|service) .')
);

create index audit_by_time on audit (at, id);
create index audit_of_subject on audit (subject, at);
create trigger audit_is_immutable before update or delete on audit
for each row execute function refuse_change();
create trigger audit_is_kept before truncate on audit
for each statement execute function refuse_change();
create index audit_in_order on audit (workspace_id, at, id);
-- One action, and all of a kind. Each in the order of time, which an index of the one can't give for the other.
create index audit_by_action on audit (workspace_id, action, at, id);
create index audit_by_kind on audit (workspace_id, split_part(action, '.', 1), at, id);

-- Whom we call. A slot is what an operation asks for; several upstreams can fill one, by priority and weight.
create table upstreams (
  id uuid primary key,
  slot text not null check (slot ~ '^[a-z0-9][a-z0-9_.-]{0,99}$'),
  mode text not null check (mode in ('live', 'test')),
  base_url text not null check (length(base_url) between 1 and 2000),
  -- How a failure to reach it is told to callers.
  kind text not null check (kind in ('native', 'managed')),
  -- Sealed: readable with the master key alone, and only as this upstream's at this address.
  credential bytea check (length(credential) between 38 and 8192),
  -- The vendor's own words for the placeholders in our paths.
  segments jsonb not null default '{}' check (jsonb_typeof(segments) = 'object'),
  -- The lowest is asked first.
  priority integer not null default 0,
  weight integer not null default 1 check (weight > 0),
  enabled boolean not null default true,
  changed_at timestamptz not null default clock_timestamp(),
  -- How many requests a minute our account there may send. Null: nobody counts.
  requests_per_minute integer check (requests_per_minute > 0),
  -- How many questions about tasks a second our account there may ask. Null: nobody counts.
  polls_per_second integer check (polls_per_second > 0),
  -- How we are known to a platform that lets its users decide: our client's id there, and where users are asked. The
  -- client's secret is the upstream's credential.
  client_id text check (length(client_id) between 1 and 200),
  authorize_url text check (length(authorize_url) between 1 and 2000),
  constraint clients_ask_somewhere check ((client_id is null) = (authorize_url is null))
);

create index upstreams_of_slot on upstreams (slot, mode);
create trigger upstream_changes after insert or update or delete on upstreams
for each row execute function tell_upstream();
create trigger list_changes after insert or update or delete on upstreams
for each statement execute function tell_models();
create trigger quota_of_removed after delete on upstreams
for each row execute function forget_quota();

-- What operators change about prices. The published default stands with the operation itself, as version 0.

create table price_versions (
  operation text not null check (length(operation) between 1 and 64),
  version integer not null check (version > 0),
  -- USD for a unit of the operation.
  unit_price numeric not null check (unit_price >= 0),
  -- What the upstream charges us for a unit.
  provider_cost numeric check (provider_cost >= 0),
  created_at timestamptz not null default clock_timestamp(),
  primary key (operation, version),
  constraint unit_price_is_readable check (unit_price < 1e18 and scale(unit_price) <= 18),
  constraint provider_cost_is_readable check (provider_cost < 1e18 and scale(provider_cost) <= 18)
);

-- An account with its own pricing pays that, whatever its plan.
create table account_prices (
  account_id uuid not null references accounts,
  operation text not null check (length(operation) between 1 and 64),
  unit_price numeric not null check (unit_price >= 0),
  primary key (account_id, operation),
  constraint unit_price_is_readable check (unit_price < 1e18 and scale(unit_price) <= 18)
);

-- How a call went, beside what the ledger says it cost: evidence, attempts, times. Kept for a while, and never needed to
-- know what was charged.
create table request_records (
  id uuid primary key,
  detail jsonb not null
);

-- The models that are sold, what their tokens cost, and by whom they are answered.

create table models (
  -- The name that callers ask for.
  id text primary key check (id ~ '^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}$'),
  display_name text not null check (length(display_name) between 1 and 200),
  owned_by text not null check (length(owned_by) between 1 and 200),
  context_window integer not null check (context_window > 0),
  -- How long an answer may get where the caller names no limit, and the most that a caller may name.
  output_cap integer not null check (output_cap > 0),
  output_most integer not null check (output_most > 0),
  -- The most tokens of one part that is no text, by its kind. A kind that is not named may fill the context window.
  part_tokens jsonb not null default '{}',
  tokenizer text not null check (tokenizer in ('o200k', 'cl100k', 'bytes_3')),
  enabled boolean not null default true,
  created_at timestamptz not null default clock_timestamp(),
  changed_at timestamptz not null default clock_timestamp(),
  constraint cap_is_within_most check (output_cap <= output_most),
  constraint part_tokens_are_readable check (
    jsonb_typeof(part_tokens) = 'object'
    and part_tokens - array['image', 'audio', 'file'] = '{}'
    and not jsonb_path_exists(
      part_tokens, 'strict $.* ? (@.type() != "number" || @ < 1 || @ > 2147483647 || @ != @.floor())'
    )
  )
);

create trigger model_changes after insert or update or delete on models
for each row execute function tell_model('id');
create trigger list_changes after insert or update or delete on models
for each statement execute function tell_models();

-- What a million tokens cost, in USD. A row is never changed: the newest version of a model is its price. Versions outlive
-- the model, so that one that comes back does not give an old number to a new price.
create table model_prices (
  model text not null check (length(model) between 1 and 200),
  version integer not null check (version > 0),
  input numeric not null,
  output numeric not null,
  -- Null: as input.
  cache_read numeric,
  cache_write numeric,
  -- What the upstream charges us. Null: not known; of a cache: as input.
  provider_input numeric,
  provider_output numeric,
  provider_cache_read numeric,
  provider_cache_write numeric,
  -- What one picture costs, of a model that sells them by the piece: then tokens cost nothing beside it.
  images jsonb,
  provider_images jsonb,
  created_at timestamptz not null default clock_timestamp(),
  videos jsonb constraint videos_are_readable check (are_video_prices(videos)),
  provider_videos jsonb constraint provider_videos_are_readable check (are_video_prices(provider_videos)),
  -- Prices as vendors have them: parts of the plain classes of tokens, steps of long input, service tiers and calls of tools, as one
  -- object: {"rates": {…}, "above": […], "tiers": {…}, "tools": {…}, "tool_calls": 5, "tool_input": 20000}. Who reads it reads all of it
  -- or sells nothing. Null: the plain classes alone.
  classes jsonb constraint classes_are_an_object check (jsonb_typeof(classes) = 'object'),
  provider_classes jsonb constraint provider_classes_are_an_object check (jsonb_typeof(provider_classes) = 'object'),
  primary key (model, version),
  constraint input_is_readable check (input >= 0 and input < 1e18 and scale(input) <= 18),
  constraint output_is_readable check (output >= 0 and output < 1e18 and scale(output) <= 18),
  constraint cache_read_is_readable check (cache_read >= 0 and cache_read < 1e18 and scale(cache_read) <= 18),
  constraint cache_write_is_readable check (cache_write >= 0 and cache_write < 1e18 and scale(cache_write) <= 18),
  constraint provider_input_is_readable check (provider_input >= 0 and provider_input < 1e18 and scale(provider_input) <= 18),
  constraint provider_output_is_readable check (provider_output >= 0 and provider_output < 1e18 and scale(provider_output) <= 18),
  constraint provider_cache_read_is_readable check (provider_cache_read >= 0 and provider_cache_read < 1e18 and scale(provider_cache_read) <= 18),
  constraint provider_cache_write_is_readable check (provider_cache_write >= 0 and provider_cache_write < 1e18 and scale(provider_cache_write) <= 18),
  constraint images_are_readable check (are_picture_prices(images)),
  constraint provider_images_are_readable check (are_picture_prices(provider_images)),
  constraint one_way_to_pay check ((images is null and videos is null) or (input = 0 and output = 0 and (images is null or videos is null)) ),
  constraint classes_are_of_tokens check (classes is null or (images is null and videos is null))
);

create trigger model_price_changes after insert or update or delete on model_prices
for each row execute function tell_model('model');
create trigger list_changes after insert or update or delete on model_prices
for each statement execute function tell_models();

-- Where a model can be asked: at the upstreams of a slot, of the caller's mode, in a protocol and under a name of theirs.
create table model_routes (
  id uuid primary key,
  model text not null references models on delete cascade,
  slot text not null check (slot ~ '^[a-z0-9][a-z0-9_.-]{0,99}$'),
  protocol text not null,
  upstream_model text not null check (length(upstream_model) between 1 and 200),
  -- The lowest is asked first; among equals, each as often as its weight says.
  priority integer not null default 0,
  weight integer not null default 1 check (weight > 0),
  enabled boolean not null default true,
  -- The member by which they limit output. Null: the one that the caller wrote, or the protocol's own.
  output_limit text check (length(output_limit) between 1 and 100),
  -- What becomes of members of a request that nobody here knows.
  unknown_members text not null default 'refuse' check (unknown_members in ('refuse', 'pass')),
  -- Whether they count reasoning among the output tokens, or apart from them and in the total alone.
  reasoning text not null default 'within' check (reasoning in ('within', 'apart')),
  -- Whether they stop generating, and so counting, when the connection is closed.
  on_abort text not null default 'runs_on' check (on_abort in ('stops', 'runs_on')),
  -- How what an upstream makes is bounded while a stream runs, so that its hold can grow with the answer: seen is a route whose output is
  -- streamed as it is made, every token of which counts as so many bytes at the least; a top speed bounds what is made unseen.
  output_shown text not null default 'hidden' check (output_shown in ('seen', 'hidden')),
  token_bytes smallint not null default 1 check (token_bytes between 1 and 4),
  top_speed integer check (top_speed between 1 and 100000),
  unique (model, slot, protocol, upstream_model),
  constraint model_routes_protocol_check check (
    protocol in (
      'openai', 'openai_responses', 'anthropic', 'gemini', 'openai_embeddings', 'gemini_embeddings', 'openai_images', 'video'
    )
  )
);

create trigger model_route_changes after insert or update or delete on model_routes
for each row execute function tell_model('model');
create trigger list_changes after insert or update or delete on model_routes
for each statement execute function tell_models();

-- How much of it the processes have taken for themselves in the current window. A crash of PostgreSQL forgets it, which
-- sends one more allowance at the most.
create unlogged table upstream_quotas (
  upstream_id uuid primary key,
  started_at timestamptz not null,
  leased integer not null check (leased >= 0)
) with (fillfactor = 50);

-- Calls that take minutes. A task is a call whose hold outlives the process that began it: its row says what is known of
-- it, and when its upstream is asked next. The row is made by the statement that begins the call, and reaches its end in
-- the statement that settles it.

create table tasks (
  -- The call's, by which its caller knows it.
  id uuid primary key,
  account_id uuid not null,
  credential_id uuid not null,
  model text not null,
  -- CREATING: nobody knows yet whether an upstream has it. UNKNOWN: it ended without our learning how.
  state text not null check (state in ('CREATING', 'PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELED', 'UNKNOWN')),
  -- Who has it, and its name there; null where that is not known.
  upstream_id uuid,
  slot text,
  mode text check (mode in ('live', 'test')),
  upstream_task text check (length(upstream_task) between 1 and 200),
  -- Sealed, each as this task's alone.
  prompt bytea,
  video_url bytea,
  -- What the upstream says that it made.
  seconds double precision check (seconds >= 0),
  videos integer check (videos >= 0),
  resolution integer check (resolution > 0),
  -- Why it failed.
  code text check (length(code) <= 200),
  message text check (length(message) <= 2000),
  created_at timestamptz not null,
  scheduled_at timestamptz,
  ended_at timestamptz,
  -- Null where there is nobody to ask, or nothing to ask any more. Who asks moves it to when others may ask again, should
  -- the asker die.
  next_poll_at timestamptz,
  -- Younger than the time in which tasks end as a rule, when it was last asked for: those are asked for first.
  is_young boolean not null default true,
  -- How often its caller has looked, since when.
  reads_since timestamptz,
  reads integer not null default 0,
  -- Since when the upstream has said that it does not know the task; null while it does. It ends once that has lasted for too long.
  unknown_since timestamptz,
  constraint someone_is_asked check (next_poll_at is null or upstream_task is not null),
  constraint ended_is_final check ((ended_at is not null) = (state in ('SUCCEEDED', 'FAILED', 'CANCELED', 'UNKNOWN'))),
  constraint ended_is_not_asked_for check (ended_at is null or next_poll_at is null)
) with (fillfactor = 70);

create index tasks_due on tasks (upstream_id, is_young, next_poll_at) where next_poll_at is not null;
create index tasks_of_credential on tasks (credential_id, id);
create index tasks_creating on tasks (id) where state = 'CREATING';
-- One job there is one task here, so that nobody is charged for another's.
create unique index tasks_by_name on tasks (upstream_id, upstream_task) where upstream_task is not null;
create index tasks_open on tasks (created_at) where ended_at is null;
create index tasks_ended on tasks (ended_at) where ended_at is not null;
create index tasks_of_account on tasks (account_id, id);
create index tasks_unknown on tasks (unknown_since) where unknown_since is not null and ended_at is null;

-- Up to when the questions that were asked have used up the pace of an upstream. A crash of PostgreSQL forgets it, which
-- lets a few more through.
create unlogged table upstream_polls (
  upstream_id uuid primary key,
  used_until timestamptz not null
) with (fillfactor = 50);

-- Platform accounts that users have linked to a key, so that calls of it may write there.

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
  refreshed_at timestamptz,
  account_id uuid
);

create trigger link_names_account before insert on link_sessions for each row execute function name_account_of_link();

create index link_sessions_ending on link_sessions (credential_id) where ended = 'ending';
create index link_sessions_by_undo on link_sessions (undo_hash) where undo_hash is not null;
create index link_sessions_of_account on link_sessions (account_id, credential_id);

-- What calls cost the operator beyond what they were charged, where there is evidence for it: the upstream reported more than was
-- held, or delivered what can't be read. What is only presumed (broken connections, timeouts, calls that nobody resolved) is in
-- the overrun of its charge and not here, because an outage must never look like a loss that somebody causes.
--
-- The statement that ends a call inserts the row. Nobody updates one, and none is shared by accounts: processes add them up.
create table losses (
  -- The call.
  id uuid primary key,
  account_id uuid not null,
  -- What was sold, the slot that was asked, and the mode: `gpt@openai:live`.
  route text not null,
  nanos bigint not null check (nanos > 0),
  -- What the upstream says that the whole call used, at the prices of the call; null where it says nothing that can be read.
  claim bigint,
  at timestamptz not null
);

-- Read every second from a few minutes ago on; all columns that are added up are in it.
create index losses_by_time on losses (at) include (route, account_id, nanos);

-- An operator has looked: losses up to this moment no longer count, of an account at a route or of all accounts there.
create table loss_releases (
  id uuid primary key,
  route text not null,
  account_id uuid,
  actor text not null,
  at timestamptz not null default clock_timestamp()
);

create index loss_releases_of_route on loss_releases (route, at);
create index loss_releases_by_time on loss_releases (at);

-- What is to be told to somebody outside because of a change: a mail, a webhook. The row is written in the transaction of the change,
-- so that neither is there without the other; a worker delivers it at least once. Receivers know a repetition by the id.
create table outbox (
  id uuid primary key,
  kind text not null check (kind ~ '^[a-z][a-z0-9_.-]{0,62}$'),
  -- Who receives it, as far as its kind tells receivers apart. No secret.
  destination text not null check (length(destination) <= 255),
  -- Those of one lane share a bound on deliveries at once, so that a slow receiver keeps nobody else waiting.
  lane text not null generated always as (kind || ' ' || destination) stored,
  -- What must be told once only: the same again is no second row while this one is kept.
  key text check (length(key) <= 255),
  -- JSON, or the same sealed where its kind says so; neither once it was delivered.
  payload text,
  sealed bytea,
  -- How often it was taken up. Whoever took it up last is told apart by it.
  attempts integer not null default 0,
  failure text check (length(failure) <= 500),
  created_at timestamptz not null default clock_timestamp(),
  -- When it is to be taken up (again): while somebody is at it, when that lease ends.
  due_at timestamptz default clock_timestamp(),
  delivered_at timestamptz,
  -- A dead letter: given up, until an operator has it tried again or drops it.
  died_at timestamptz,
  -- Who of a destination receives a message, as a hash, so that each has its turn, and what it is called among those of which the newest is enough.
  receiver bytea,
  notice text,
  constraint outbox_state check (num_nonnulls(due_at, delivered_at, died_at) = 1),
  constraint outbox_payload check (num_nonnulls(payload, sealed) = case when delivered_at is null then 1 else 0 end)
);

create index outbox_due on outbox (lane, due_at) where due_at is not null;
create unique index outbox_keys on outbox (kind, key) where key is not null;
create index outbox_undelivered on outbox (kind, created_at) where delivered_at is null;
create index outbox_delivered on outbox (delivered_at) where delivered_at is not null;
create index outbox_dead on outbox (died_at) where died_at is not null;
create index outbox_of_receiver on outbox (receiver) where receiver is not null and due_at is not null;

-- How often keys were refused, by reason and hour. Processes count in memory and add to the rows once a minute.
create table refusals (
  -- The nil UUID for keys that were too many at once to be told apart.
  credential_id uuid not null,
  hour timestamptz not null,
  -- A code of our faults.
  reason text not null,
  count bigint not null check (count > 0),
  primary key (credential_id, hour, reason)
);

create index refusals_by_hour on refusals (hour);

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

-- What is sold, as the worker last saw it: operations, models, prices and limits, with the time of the observation in the bytes
-- themselves. One row: a snapshot replaces the one before. Bytes that are not those of the hash are refused here, and once more by
-- whoever reads them.
create table sales_snapshots (
  is_newest boolean primary key default true check (is_newest),
  content_hash text not null check (content_hash = encode(sha256(bytes), 'hex')),
  bytes bytea not null check (length(bytes) between 2 and 16777216),
  -- Since when no other could be made; null where the last attempt made this one.
  failed_at timestamptz
);

-- Read whole or not at all.
alter table sales_snapshots alter column bytes set storage external;

-- Usage that is in no sum yet: written with a charge, or with what gives one back, and taken out by who adds it up. It is no more than what
-- came in a second or two, so that it is read as a whole; dead rows have to go soon for that.
create table usage_tail (
  account_id uuid not null,
  credential_id uuid not null,
  at timestamptz not null,
  operation text not null,
  model text,
  end_user uuid,
  end_user_label text,
  tags text[],
  requests integer not null,
  failed_requests integer not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_write_tokens bigint not null,
  value bigint not null,
  charged bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_threshold = -1);

-- Sums of usage. `about` says of which calls a sum is: of all calls (empty), of an operation, of a model, of an end user, or of a value of a tag (tag:<name>);
-- `subject` says which operation, model, end user or value. Where it is empty, the sum is of all that have an end user, or a tag of that name. A call with two
-- tags is in the sums of both, so only those of one `about` are added up. `grain` says whether a sum is of an hour or of a day, in UTC. Texts are compared byte
-- by byte: nobody reads them in order.

-- Of one dimension, of a key and of its whole account: a report reads a row for each of its groups and buckets, and finds the largest of very many end users
-- without reading them all.
create table usage_totals (
  -- A credential or an account.
  scope_id uuid not null,
  about text collate "C" not null,
  grain text collate "C" not null check (grain in ('hour', 'day')),
  subject text collate "C" not null,
  starts_at timestamptz not null,
  account_id uuid not null,
  -- Of an end user, for people.
  subject_label text,
  requests bigint not null,
  failed_requests bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_write_tokens bigint not null,
  value bigint not null,
  charged bigint not null,
  -- How large a day is, in steps of a fifth: with the amount itself in an index, every change would write the index. What is free is ranked by its
  -- requests, below all that was charged.
  size smallint generated always as (case when grain = 'hour' then null when charged > 0 then round(4 * ln(charged::float8) / ln(2::float8))
    else -1000 + round(4 * ln(greatest(requests, 0)::float8 + 1) / ln(2::float8)) end) stored,
  -- As many as there are names, so they are kept for 100 days; their days are kept for longer.
  is_brief boolean generated always as (grain = 'hour' and subject <> '' and about not in ('operation', 'model')) stored,
  primary key (scope_id, about, grain, subject, starts_at)
) with (fillfactor = 80);

create index usage_totals_by_size on usage_totals (scope_id, about, starts_at, size desc) where grain = 'day' and subject <> '';
-- A report by operation or by model is about all of them, and one by key about all keys.
create index usage_totals_of_calls on usage_totals (scope_id, about, grain, starts_at) where about in ('operation', 'model');
create index usage_totals_of_keys on usage_totals (account_id, grain, starts_at) where about = '' and scope_id <> account_id;
-- The names of a day, key by key.
create index usage_totals_to_combine on usage_totals (starts_at, scope_id, about, subject)
where grain = 'day' and scope_id <> account_id and about not in ('operation', 'model');
-- For those who drop what is old: what is kept for longer stands between them.
create index usage_totals_brief on usage_totals (starts_at) where is_brief;
create index usage_totals_lasting on usage_totals (starts_at) where not is_brief;

-- Of a key, by operation and model: for reports that combine two dimensions, such as a model and a tag. Days are made of the hours once they are over, so a
-- call writes them with none of its own rows. Until there are any, reports read the hours.
create table usage_sums (
  credential_id uuid not null,
  -- Empty, end_user, or tag:<name>.
  about text collate "C" not null,
  grain text collate "C" not null check (grain in ('hour', 'day')),
  subject text collate "C" not null,
  starts_at timestamptz not null,
  operation text collate "C" not null,
  -- Empty where there is none.
  model text collate "C" not null,
  account_id uuid not null,
  subject_label text,
  requests bigint not null,
  failed_requests bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_write_tokens bigint not null,
  value bigint not null,
  charged bigint not null,
  is_brief boolean generated always as (subject <> '') stored,
  primary key (credential_id, about, grain, subject, starts_at, operation, model)
) with (fillfactor = 80);

create index usage_sums_of_account on usage_sums (account_id, about, grain, subject, starts_at);
create index usage_sums_brief on usage_sums (starts_at) where is_brief;
create index usage_sums_lasting on usage_sums (starts_at) where not is_brief;

-- How far days of usage_sums are made; without a row, none is. All days before `until` are, and of that day the names up to and with this one.
create table usage_combined (
  is_all boolean primary key default true check (is_all),
  until timestamptz not null,
  credential_id uuid,
  about text collate "C",
  subject text collate "C"
);

-- From when on there are brief sums; without a row, from the beginning.
create table usage_kept (
  is_all boolean primary key default true check (is_all),
  hours_from timestamptz not null
);

-- Ceilings where people want them: budgets of workspaces, members, tags and end users beside those of keys. Each is an allowance, which BEGIN
-- holds and EXTEND grows.

-- What an account's spend may be in a period: all of it, that of a member, of calls with a tag, of an end user. Its id follows from the rest.
-- A budget of one subject has an allowance of the same id; one of every value of a tag, or of every end user, has one for each that is met.
create table budgets (
  id uuid primary key,
  account_id uuid not null references accounts,
  kind text not null check (kind in ('workspace', 'member', 'tag', 'end_user')),
  -- Nothing for a workspace, the id of a person or one of an address of the workspace, name=value or name=* of a tag, the id of an end user or *.
  subject text not null check (length(subject) <= 200),
  -- The subject as people know it.
  label text not null check (length(label) <= 200),
  period text not null check (period in ('day', 'week', 'month', 'total')),
  amount bigint not null check (amount >= 0),
  set_at timestamptz not null default clock_timestamp(),
  constraint one_of_a_subject unique (account_id, kind, subject, period),
  constraint a_workspace_needs_no_name check ((kind = 'workspace') = (subject = ''))
);

create index budgets_of_members on budgets (subject) where kind = 'member';

-- For whom callers make their calls, as far as they say so. Of what they said there is a hash, in the id, and a short label.
create table end_users (
  account_id uuid not null references accounts,
  id uuid not null,
  label text not null check (length(label) between 1 and 60),
  -- To the day or so.
  seen_at timestamptz not null,
  -- Until when it can have been one of those for whom there was no place; null where it never was.
  late_at timestamptz,
  primary key (account_id, id)
);

create index end_users_by_last_seen on end_users (seen_at);

-- How many an account has, so that there is a bound.
create table end_user_counts (
  account_id uuid primary key references accounts,
  users integer not null check (users >= 0),
  -- Whether there ever was no place for one.
  turned_away boolean not null default false
);

-- What people were told of a budget last: per cent of the amount, in which period. It changes in the transaction of the letters.
create table budget_notices (
  allowance_id uuid primary key references allowances,
  starts_at timestamptz not null,
  -- 0 for nothing in this period, and nothing of those before it.
  level smallint not null check (level in (0, 50, 80, 100))
);

-- Accounts whose people were told that the balance is low, and have not been above it since.
create table balance_notices (
  account_id uuid primary key references accounts,
  told_at timestamptz not null default clock_timestamp()
);

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

-- Windows and periods, wherever they stand: for those who read them. They are changed by functions alone.
create view windows as
select credential_id, limit_group, started_at, requests, tokens from group_windows where limit_group <> 'all'
union all
select id, 'all', all_started_at, all_requests, all_tokens from credentials where all_started_at is not null;

create view allowance_periods as
select allowance_id, starts_at, amount, charged, held from kept_periods
union all
select budget_id, budget_starts_at, budget_amount, budget_charged, budget_held from credentials where budget_id is not null;

-- Whether one of these ids has ended, `days` being the days that the ids carry. Written anew by name_days_of_charges() every
-- day, with a statement for each day that calls may come for: such a statement is planned once for a connection, where one
-- that is put together from the name of a day is planned for every batch.
create function has_ended(ids uuid[], days date[]) returns boolean
language plpgsql stable as $$
begin
  return exists (select from ended_among(ids, days));
end
$$;

insert into plans values ('standard', 1, 1);
-- A reader's place is a row that it has read, so there is always one to start from.
insert into change_log (topic, key) values ('change_log', 'created');
