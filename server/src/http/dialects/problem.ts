import { STATUS_CODES } from 'node:http'
import type { Fault } from '../../kernel/fault.ts'

/** RFC 9457, for the APIs of accounts and operators, and for programs that ask a page's address for JSON. */
export function renderProblem(fault: Fault, requestId: string) {
  const { status, code, message, members } = fault
  return {
    ...members,
    type: 'about:blank',
    title: STATUS_CODES[status] ?? '',
    status,
    detail: message,
    code,
    request_id: requestId,
  }
}
