const TYPES: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [408, 'timeout_error'],
  [409, 'conflict_error'],
  [429, 'rate_limit_error'],
])

/** The kind of an error in the words that the messages protocol has for it; the data endpoints use the same. */
export function errorTypeOf(status: number): string {
  return TYPES.get(status) ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}
