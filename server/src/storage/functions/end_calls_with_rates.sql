-- Ends calls of which nobody says whom they went to, for processes of before: see end_attributed_calls.
create or replace function end_calls_with_rates(
  accounts_in uuid[],
  call_days date[],
  call_ids uuid[],
  call_accounts uuid[],
  -- The amount to charge, or null to void.
  call_amounts bigint[],
  -- Voided although the upstream was asked, or may have been: the amount is overrun, and nothing is charged.
  call_forgiven boolean[],
  call_values bigint[],
  call_upstream_costs bigint[],
  call_executed boolean[],
  call_failed boolean[],
  call_input_tokens bigint[],
  call_output_tokens bigint[],
  call_cache_read_tokens bigint[],
  call_cache_write_tokens bigint[],
  -- Windows that somebody asks for, each once, and whether it counts tokens.
  ask_credentials uuid[],
  ask_groups text[],
  ask_counts_tokens boolean[]
) returns table (
  outcome text,
  charged bigint,
  overrun bigint,
  free bigint,
  -- Whether it was this statement that ended the call.
  ended_now boolean,
  settled_at timestamptz,
  -- Every window that is asked for, if there is one, and perhaps others.
  -- Its credential and its group, with a space between.
  window_keys text[],
  -- Its start in Unix seconds, its requests and its tokens.
  window_states double precision[][]
)
language plpgsql volatile as $$
begin
  return query select ended.outcome, ended.charged, ended.overrun, ended.free, ended.ended_now, ended.settled_at, ended.window_keys,
    ended.window_states
  from end_attributed_calls(
    accounts_in => accounts_in,
    call_days => call_days,
    call_ids => call_ids,
    call_accounts => call_accounts,
    call_amounts => call_amounts,
    call_forgiven => call_forgiven,
    call_values => call_values,
    call_upstream_costs => call_upstream_costs,
    call_executed => call_executed,
    call_failed => call_failed,
    call_input_tokens => call_input_tokens,
    call_output_tokens => call_output_tokens,
    call_cache_read_tokens => call_cache_read_tokens,
    call_cache_write_tokens => call_cache_write_tokens,
    call_routes => '{}',
    ask_credentials => ask_credentials,
    ask_groups => ask_groups,
    ask_counts_tokens => ask_counts_tokens,
    books_hours => true
  ) ended;
end
$$;
