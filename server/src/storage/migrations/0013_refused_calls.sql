-- What was refused, for a week: of each workspace a few hundred calls a minute at the most, the rest only as counts (refusals). Written behind the answer; what a
-- process that dies had not written is lost. An id carries when the request came, and all reading and forgetting goes by it.
-- Functions: keep_refused_calls.
create table refused_calls (
  id uuid primary key,
  account_id uuid not null,
  credential_id uuid not null,
  operation text,
  -- By the name that the caller asked for.
  model text,
  -- A code of our faults, and the status that goes with it.
  code text not null,
  status smallint not null,
  -- What the call needed, and what was left for it; null where its caller was not told.
  needed bigint,
  left_over bigint,
  budget_kind text,
  budget_subject text,
  budget_period text,
  limited_by text,
  -- With which output limit it would have fitted.
  fitting_output bigint,
  retry_after_seconds integer,
  -- Where somebody can mend it.
  fix_url text,
  idempotency_key text
);

create index refused_calls_of_account on refused_calls (account_id, id);
create index refused_calls_of_credential on refused_calls (credential_id, id);
create index refused_calls_by_key on refused_calls (credential_id, idempotency_key, id) where idempotency_key is not null;
