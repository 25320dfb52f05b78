-- Begins calls of which nobody says whose spend they are, for processes of the last release: see begin_attributed_calls.
create or replace function begin_calls(
  owner_id_in uuid,
  accounts_in uuid[],
  credentials_in uuid[],
  window_credentials uuid[],
  window_groups text[],
  window_seconds integer[],
  allowances_in uuid[],
  set_credentials uuid[],
  set_scopes text[],
  set_keys text[],
  -- The days that the ids carry, each once.
  call_days date[],
  call_ids uuid[],
  call_accounts integer[],
  call_credentials integer[],
  call_holds boolean[],
  call_amounts bigint[],
  call_tokens bigint[],
  call_operations text[],
  call_terms text[],
  call_allowances text[],
  call_token_groups text[],
  ask_windows_to integer[],
  ask_windows integer[],
  ask_request_limits integer[],
  ask_token_limits bigint[],
  ask_allowances_to integer[],
  ask_allowances integer[],
  ask_sets_to integer[],
  ask_sets integer[],
  ask_set_limits integer[],
  ask_fingerprints text[],
  ask_keep_seconds integer[],
  ask_ends_with_owner boolean[]
) returns table (
  outcome text,
  -- Which of the call's windows, allowances or claims refused it, counted from 0 in the order of the call.
  subject integer,
  -- Money of the account that is free, after the call where it was begun.
  free bigint,
  -- What is left of the allowance that refused.
  allowance_left bigint,
  -- The call that has the claim, where the set has room for one.
  holder uuid,
  request_limit integer,
  requests_left integer,
  requests_reset_at timestamptz,
  token_limit bigint,
  tokens_left bigint,
  tokens_reset_at timestamptz,
  judged_at timestamptz
)
language plpgsql volatile as $$
begin
  -- Nobody who calls this knows budgets but those of keys. None of them lives when others are set; one that slept meanwhile may come back.
  if true = any (call_holds) and exists (select from budgets where account_id = any (accounts_in)) then
    raise exception 'there are budgets that this release of the program does not know: run a newer one';
  end if;
  return query select begun.outcome, begun.subject, begun.free, begun.allowance_left, begun.holder, begun.request_limit,
    begun.requests_left, begun.requests_reset_at, begun.token_limit, begun.tokens_left, begun.tokens_reset_at, begun.judged_at
  from begin_attributed_calls(
    owner_id_in => owner_id_in,
    accounts_in => accounts_in,
    credentials_in => credentials_in,
    window_credentials => window_credentials,
    window_groups => window_groups,
    window_seconds => window_seconds,
    allowances_in => allowances_in,
    set_credentials => set_credentials,
    set_scopes => set_scopes,
    set_keys => set_keys,
    call_days => call_days,
    call_ids => call_ids,
    call_accounts => call_accounts,
    call_credentials => call_credentials,
    call_holds => call_holds,
    call_amounts => call_amounts,
    call_tokens => call_tokens,
    call_operations => call_operations,
    call_terms => call_terms,
    call_allowances => call_allowances,
    call_token_groups => call_token_groups,
    call_models => '{}',
    call_end_users => '{}',
    call_end_user_labels => '{}',
    call_tags => '{}',
    ask_windows_to => ask_windows_to,
    ask_windows => ask_windows,
    ask_request_limits => ask_request_limits,
    ask_token_limits => ask_token_limits,
    ask_allowances_to => ask_allowances_to,
    ask_allowances => ask_allowances,
    ask_sets_to => ask_sets_to,
    ask_sets => ask_sets,
    ask_set_limits => ask_set_limits,
    ask_fingerprints => ask_fingerprints,
    ask_keep_seconds => ask_keep_seconds,
    ask_ends_with_owner => ask_ends_with_owner
  ) begun;
end
$$;
