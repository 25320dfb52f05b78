import type { Fault } from '../../kernel/fault.ts'
import { errorTypeOf } from './error-type.ts'

/** The shape of the data endpoints and of everything that belongs to no model protocol. */
export function renderData(fault: Fault, requestId: string) {
  const type = errorTypeOf(fault.status)
  return { error: { ...fault.members, code: fault.code, message: fault.message, type }, request_id: requestId }
}
