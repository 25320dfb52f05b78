import type { Fault } from '../kernel/fault.ts'

/** One SDK takes a longer wait for none at all, and retries within a second. */
const LONGEST_HONOURED_SECONDS = 60

const RATE_WINDOW_SECONDS = 60
const QUOTA_SECONDS = 3_600
const SHORTLY_SECONDS = 1

/** How long to wait, in whole seconds: what the fault says, else what its kind implies, else nothing. */
export function retryAfterSecondsOf(fault: Fault): number | undefined {
  if (fault.retryAfterSeconds !== undefined) return Math.max(1, Math.ceil(fault.retryAfterSeconds))
  if (fault.code === 'quota_exceeded') return QUOTA_SECONDS
  if (fault.status === 429) return RATE_WINDOW_SECONDS
  // A request that did not arrive in time can be sent again at once.
  return fault.retryable && fault.status !== 408 ? SHORTLY_SECONDS : undefined
}

/** SDKs repeat these statuses by themselves, and without an idempotency key, unless they are told not to. */
export function mustForbidRetry(fault: Fault): boolean {
  const { status, code } = fault
  // It never reached anybody. Sent again, it is refused again until the operator mends it.
  if (code === 'not_configured') return false
  const repeatedBySdks = status === 408 || status === 409 || status === 429 || status >= 500
  return repeatedBySdks && (!fault.retryable || (retryAfterSecondsOf(fault) ?? 0) > LONGEST_HONOURED_SECONDS)
}
