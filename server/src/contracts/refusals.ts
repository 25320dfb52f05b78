import { type Dialect, isSoldByUnit, isTask, type Operation } from '../catalogue/operation.ts'
import type { FaultCode } from '../kernel/fault.ts'
import type { Refusals } from './route.ts'

/** What any request can meet before its route has looked at it. */
export const ON_ARRIVAL: readonly FaultCode[] = [
  ...(['invalid_request', 'request_timeout', 'body_too_large', 'uri_too_long', 'unsupported_media_type'] as const),
  ...(['expectation_failed', 'headers_too_large', 'internal_error', 'overloaded'] as const),
]

/** And where a credential is asked for. */
const WITH_CREDENTIAL: readonly FaultCode[] = [
  ...ON_ARRIVAL,
  ...(['missing_credential', 'invalid_credential', 'expired_credential', 'address_not_allowed', 'forbidden'] as const),
  'mandate_paused',
  ...(['rate_limit_exceeded', 'billing_dependency_timeout'] as const),
]

const OF_FREE_ROUTES: readonly FaultCode[] = [...WITH_CREDENTIAL, 'quote_not_supported']

const OF_CALLS: readonly FaultCode[] = [
  ...WITH_CREDENTIAL,
  ...(['invalid_json', 'body_too_deep', 'quote_not_supported', 'quote_invalid', 'quote_used'] as const),
  ...([
    'insufficient_balance',
    'budget_exceeded',
    'budget_required',
    'approval_required',
    'approval_refused',
    'cost_cap_exceeded',
    'account_suspended',
  ] as const),
  ...(['loss_ceiling_account', 'loss_ceiling_route', 'quota_exceeded'] as const),
  ...(['idempotency_completed', 'idempotency_running', 'outcome_unknown', 'idempotency_mismatch'] as const),
  ...(['upstream_rate_limit', 'upstream_transport', 'upstream_unreachable', 'upstream_unreadable'] as const),
  ...(['managed_upstream_transport', 'managed_upstream_unreachable', 'upstream_account'] as const),
  ...(['not_sold', 'not_configured', 'upstream_not_found'] as const),
  ...(['settlement_timeout', 'invalid_billing_configuration'] as const),
]

/** How a route refuses by which a key looks at what is its own, and which may need more words than others. */
export function refusalsOfFree(dialect: string, also: Also = {}): Refusals {
  const { name, codes = [], ...rest } = also
  return { name: name ?? 'free', dialect, codes: [...OF_FREE_ROUTES, ...codes], ...rest }
}

type Also = { readonly name?: string; readonly codes?: readonly FaultCode[]; readonly dialectOf400?: string }

/** How an operation refuses, by what kind it is. */
export function refusalsOf(operation: Operation): Refusals {
  const { kind, codes } = kindOf(operation)
  const dialect: Dialect = operation.dialect
  return { name: kind, dialect, codes: [...OF_CALLS, ...codes] }
}

function kindOf(operation: Operation): { readonly kind: string; readonly codes: readonly FaultCode[] } {
  if (operation.isHidden) return { kind: 'hidden_call', codes: ['route_not_found'] }
  if (isTask(operation)) return { kind: 'task_call', codes: ['resource_not_found', 'model_not_found'] }
  if (!isSoldByUnit(operation))
    return { kind: 'model_call', codes: ['resource_not_found', 'model_not_found', 'route_not_found'] }
  if (operation.actsFor !== undefined) return { kind: 'linked_call', codes: ['link_required', 'link_scope_missing'] }
  return { kind: 'call', codes: [] }
}
