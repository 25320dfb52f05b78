import type { Fault, FaultCode } from '../kernel/fault.ts'

/**
 * What a refusal says of the money of the call that it refuses. Whoever adds a code has to say it too.
 * - unasked: it was refused before anything was asked of anybody.
 * - said: its own words say that nothing was charged, or it tells of another call.
 * - unknown: it may have cost something; its words say what is known.
 */
const MONEY: Readonly<Record<FaultCode, 'unasked' | 'said' | 'unknown'>> = {
  invalid_request: 'unasked',
  invalid_json: 'unasked',
  body_too_deep: 'unasked',
  quote_not_supported: 'unknown',
  quote_invalid: 'unknown',
  missing_credential: 'unknown',
  invalid_credential: 'said',
  expired_credential: 'said',
  insufficient_balance: 'unasked',
  budget_exceeded: 'unasked',
  budget_required: 'unasked',
  approval_required: 'said',
  cost_cap_exceeded: 'unasked',
  account_suspended: 'unasked',
  forbidden: 'unasked',
  address_not_allowed: 'said',
  approval_refused: 'said',
  mandate_paused: 'said',
  form_refused: 'unknown',
  // No call is refused so: they are of the account API.
  sign_in_required: 'unknown',
  cross_site_refused: 'unknown',
  quota_request_open: 'unknown',
  quota_request_decided: 'unknown',
  workspace_closing: 'unknown',
  export_not_ready: 'unknown',
  precondition_failed: 'unknown',
  precondition_required: 'unknown',
  link_required: 'unasked',
  link_scope_missing: 'unasked',
  sign_up_closed: 'unknown',
  invitation_for_another: 'unknown',
  loss_ceiling_account: 'said',
  route_not_found: 'unknown',
  resource_not_found: 'unasked',
  model_not_found: 'unasked',
  method_not_allowed: 'unknown',
  request_timeout: 'unknown',
  quote_used: 'unknown',
  idempotency_completed: 'said',
  idempotency_running: 'unknown',
  outcome_unknown: 'unknown',
  task_not_cancelable: 'unknown',
  last_owner: 'unknown',
  already_member: 'unknown',
  members_full: 'unknown',
  contract_hash_mismatch: 'unknown',
  body_too_large: 'unknown',
  uri_too_long: 'unasked',
  unsupported_media_type: 'unknown',
  expectation_failed: 'unknown',
  misdirected_request: 'unknown',
  idempotency_mismatch: 'said',
  rate_limit_exceeded: 'unasked',
  upstream_rate_limit: 'unknown',
  quota_exceeded: 'unasked',
  headers_too_large: 'unknown',
  internal_error: 'unknown',
  unsupported_uri: 'unknown',
  upstream_transport: 'unknown',
  upstream_unreachable: 'said',
  upstream_unreadable: 'unknown',
  output_limit_passed: 'unknown',
  managed_upstream_transport: 'unknown',
  managed_upstream_unreachable: 'said',
  loss_ceiling_route: 'said',
  upstream_account: 'unknown',
  upstream_not_found: 'unknown',
  billing_dependency_timeout: 'unknown',
  settlement_timeout: 'unknown',
  invalid_billing_configuration: 'said',
  not_configured: 'unknown',
  contract_unavailable: 'unknown',
  sales_data_unavailable: 'unknown',
  overloaded: 'unasked',
}

export function isRefusedUnasked({ code }: Fault): boolean {
  return MONEY[code] === 'unasked'
}

/** Whether a call that failed without saying what it cost may have cost something. Who can't tell has to reckon with it. */
export function mayHaveCost({ code }: Fault): boolean {
  return MONEY[code] === 'unknown'
}
