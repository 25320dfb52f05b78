-- Ends calls of which nobody asks what is left of their limits, for processes of the last release: see end_attributed_calls.
create or replace function end_calls(
  accounts_in uuid[],
  call_days date[],
  call_ids uuid[],
  call_accounts uuid[],
  call_amounts bigint[],
  call_forgiven boolean[],
  call_values bigint[],
  call_upstream_costs bigint[],
  call_executed boolean[],
  call_failed boolean[],
  call_input_tokens bigint[],
  call_output_tokens bigint[],
  call_cache_read_tokens bigint[],
  call_cache_write_tokens bigint[]
) returns table (
  outcome text,
  charged bigint,
  overrun bigint,
  free bigint,
  ended_now boolean,
  settled_at timestamptz
)
language plpgsql volatile as $$
begin
  return query select ended.outcome, ended.charged, ended.overrun, ended.free, ended.ended_now, ended.settled_at
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
    call_routes => '{}', ask_credentials => '{}', ask_groups => '{}', ask_counts_tokens => '{}',
    books_hours => true
  ) ended;
end
$$;
