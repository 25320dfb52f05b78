import type { Fault } from '../../kernel/fault.ts'

/** RFC 6749: one of a few words, and a description for whoever reads the log of a client. */
export function renderOauth(fault: Fault, requestId: string) {
  return { error: errorOf(fault.status), error_description: inAscii(fault.message), request_id: requestId }
}

function errorOf(status: number): string {
  if (status === 401) return 'invalid_client'
  if (status === 403) return 'access_denied'
  if (status === 408 || status === 429 || status === 503) return 'temporarily_unavailable'
  return status >= 500 ? 'server_error' : 'invalid_request'
}

/** The standard allows no other characters there. */
function inAscii(text: string): string {
  return text.replaceAll('"', "'").replaceAll(/[^ -!#-[\]-~]/g, '?')
}
