import type { Fault, FaultCode } from '../kernel/fault.ts'

/** Refusals before anything was asked of anybody. Of all others the words say themselves what they know of the money. */
const REFUSED: ReadonlySet<FaultCode> = new Set<FaultCode>([
  'invalid_request',
  'invalid_json',
  'body_too_deep',
  'uri_too_long',
  'insufficient_balance',
  'budget_exceeded',
  'cost_cap_exceeded',
  'account_suspended',
  'forbidden',
  'link_required',
  'link_scope_missing',
  'resource_not_found',
  'rate_limit_exceeded',
  'quota_exceeded',
  'overloaded',
])

/** Those whose own words say that nothing was charged, or that tell of another call. */
const SAID: ReadonlySet<FaultCode> = new Set<FaultCode>([
  'invalid_credential',
  'address_not_allowed',
  'loss_ceiling_account',
  'loss_ceiling_route',
  'upstream_unreachable',
  'managed_upstream_unreachable',
  'idempotency_completed',
  'idempotency_mismatch',
  'invalid_billing_configuration',
  'shutting_down',
])

export function isRefusedUnasked({ code }: Fault): boolean {
  return REFUSED.has(code)
}

/** Whether a call that failed without saying what it cost may have cost something. Who can't tell has to reckon with it. */
export function mayHaveCost({ code }: Fault): boolean {
  return !REFUSED.has(code) && !SAID.has(code)
}
