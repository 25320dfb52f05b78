import type { Fault } from '../../kernel/fault.ts'
import { retryAfterSecondsOf } from '../retry-after.ts'
import { errorTypeOf } from './error-type.ts'

const STATUSES: ReadonlyMap<number, string> = new Map([
  [401, 'UNAUTHENTICATED'],
  [402, 'RESOURCE_EXHAUSTED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [408, 'DEADLINE_EXCEEDED'],
  [409, 'ABORTED'],
  [429, 'RESOURCE_EXHAUSTED'],
  [502, 'UNAVAILABLE'],
  [503, 'UNAVAILABLE'],
])

/**
 * The code stands in `details[].reason`: `error.code` is the HTTP status in this protocol. The id of the request stands in its own
 * place in `details`, and beside the error, where all our refusals have it. The type is ours, as in the other protocols.
 */
export function renderGemini(fault: Fault, requestId: string) {
  const retryAfterSeconds = retryAfterSecondsOf(fault)
  return {
    error: {
      code: fault.status,
      message: fault.message,
      type: errorTypeOf(fault.status),
      status: STATUSES.get(fault.status) ?? (fault.status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT'),
      details: [
        { '@type': typeUrl('ErrorInfo'), reason: fault.code, domain: 'gateway', metadata: texts(fault.members) },
        { '@type': typeUrl('RequestInfo'), requestId },
        // The SDK of this protocol never reads the Retry-After header.
        ...(retryAfterSeconds === undefined
          ? []
          : [{ '@type': typeUrl('RetryInfo'), retryDelay: `${retryAfterSeconds}s` }]),
      ],
    },
    request_id: requestId,
  }
}

function typeUrl(name: string): string {
  return `type.googleapis.com/google.rpc.${name}`
}

/** The metadata of an ErrorInfo is a map from text to text. */
function texts(members: Fault['members']): Record<string, string> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, String(value)]))
}
