import type { Fault } from '../../kernel/fault.ts'

const TYPES: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [408, 'timeout_error'],
  [409, 'conflict_error'],
  [429, 'rate_limit_error'],
  [503, 'service_unavailable_error'],
])

export function renderOpenai(fault: Fault, requestId: string) {
  const type = TYPES.get(fault.status) ?? (fault.status >= 500 ? 'server_error' : 'invalid_request_error')
  return {
    error: { param: null, ...fault.members, message: fault.message, type, code: fault.code },
    request_id: requestId,
  }
}
