import type { Fault } from '../../kernel/fault.ts'

const TYPES: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [408, 'timeout_error'],
  [409, 'conflict_error'],
  [429, 'rate_limit_error'],
])

/** The shape of the data endpoints and of everything that belongs to no model protocol. */
export function renderData(fault: Fault, requestId: string) {
  const type = TYPES.get(fault.status) ?? (fault.status >= 500 ? 'api_error' : 'invalid_request_error')
  return { error: { ...fault.members, code: fault.code, message: fault.message, type }, request_id: requestId }
}
