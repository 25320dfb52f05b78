import type { Fault } from '../../kernel/fault.ts'
import { errorTypeOf } from './error-type.ts'

/** This protocol has a place for codes in `details`; ours stands beside the type too, where the others have it. */
export function renderAnthropic(fault: Fault, requestId: string) {
  return {
    type: 'error',
    error: {
      type: fault.code === 'overloaded' ? 'overloaded_error' : errorTypeOf(fault.status),
      message: fault.message,
      code: fault.code,
      details: { ...fault.members, error_code: fault.code },
    },
    request_id: requestId,
  }
}
