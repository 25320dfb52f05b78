import type { Fault, FaultCode } from '../../kernel/fault.ts'

const TYPES: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [408, 'timeout_error'],
  [409, 'conflict_error'],
  [429, 'rate_limit_error'],
])

const OVERLOAD: ReadonlySet<FaultCode> = new Set<FaultCode>(['overloaded', 'shutting_down'])

/** This protocol has a place for codes in `details`; ours stands beside the type too, where the others have it. */
export function renderAnthropic(fault: Fault, requestId: string) {
  return {
    type: 'error',
    error: {
      type: typeOf(fault),
      message: fault.message,
      code: fault.code,
      details: { ...fault.members, error_code: fault.code },
    },
    request_id: requestId,
  }
}

function typeOf({ code, status }: Fault): string {
  if (OVERLOAD.has(code)) return 'overloaded_error'
  return TYPES.get(status) ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}
