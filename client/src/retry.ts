import type { Heard } from './attempt.ts'

/** When a request is sent again, and after how long. Nothing here asks or waits: it decides. */

export type Verdict =
  /** The caller is told what was heard: an answer, or a refusal that only the caller can mend. */
  | { readonly next: 'tell' }
  /** Nothing can have come of it: it is sent again after a while. */
  | { readonly next: 'repeat'; readonly because: 'limited' | 'transient'; readonly retryAfterMs: number | undefined }
  /** Nobody here knows what came of it: the request is looked up by its key before anything else. */
  | { readonly next: 'look up'; readonly retryAfterMs: number | undefined }

const TELL: Verdict = { next: 'tell' }

/** The operator has to act, or the caller: no wait helps. */
const LASTING: ReadonlySet<string> = new Set(['quota_exceeded', 'not_configured', 'invalid_billing_configuration'])

/** The gateway says by these that no provider was asked, and that nothing is held or charged. */
const NEVER_BEGUN: ReadonlySet<string> = new Set([
  ...['request_timeout', 'overloaded', 'billing_dependency_timeout', 'contract_unavailable'],
  ...['upstream_unreachable', 'managed_upstream_unreachable', 'loss_ceiling_route'],
])

/**
 * What to do about what was heard. A call that is paid for is repeated only where its answer says that nothing was charged; where
 * nothing was heard, or nothing of the gateway's, it is looked up.
 */
export function judge(heard: Heard, isPaid: boolean): Verdict {
  if (heard.kind === 'cut')
    return isPaid ? { next: 'look up', retryAfterMs: undefined } : repeat('transient', undefined)
  const { status, headers, code = '', cost } = heard
  if (status < 400) return TELL
  const retryAfterMs = retryAfterOf(headers)
  if (headers.get('x-should-retry') === 'false' || LASTING.has(code)) return TELL
  // It was paid for, whatever it says: to repeat it would be to pay again.
  if (cost !== undefined && cost.nanos !== 0n) return TELL
  if (status === 429) return repeat('limited', retryAfterMs)
  if (status === 409) return code === 'idempotency_running' ? { next: 'look up', retryAfterMs } : TELL
  if (status !== 408 && status < 500) return TELL
  const isKnownFree = !isPaid || cost !== undefined || NEVER_BEGUN.has(code)
  return isKnownFree ? repeat('transient', retryAfterMs) : { next: 'look up', retryAfterMs }
}

function repeat(because: 'limited' | 'transient', retryAfterMs: number | undefined): Verdict {
  return { next: 'repeat', because, retryAfterMs }
}

/** Seconds, as the gateway says them, or a date, as something between may. */
export function retryAfterOf(headers: Headers, nowMs = Date.now()): number | undefined {
  const text = headers.get('retry-after')?.trim()
  if (!text) return undefined
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1_000
  const atMs = Date.parse(text)
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs)
}

export const LIMITED_MOST_MS = 30_000
const LIMITED_FIRST_MS = 1_000
const TRANSIENT_FIRST_MS = 500
const TRANSIENT_MOST_MS = 8_000
/** A quarter more or less, so that those who were refused together do not come again together. */
const JITTER = 0.25

/** The waits of one call, each longer than the last. */
export type Backoff = {
  readonly nextMs: (because: 'limited' | 'transient', retryAfterMs: number | undefined) => number
}

export function createBackoff(random: () => number): Backoff {
  let limitedMs = 0
  let transientMs = 0
  return {
    nextMs(because, retryAfterMs = 0) {
      const jitter = 1 - JITTER + 2 * JITTER * random()
      if (because === 'limited') {
        limitedMs = Math.max(limitedMs * 2, retryAfterMs || LIMITED_FIRST_MS)
        return Math.max(retryAfterMs, Math.min(LIMITED_MOST_MS, limitedMs * jitter))
      }
      transientMs = Math.min(TRANSIENT_MOST_MS, transientMs * 2 || TRANSIENT_FIRST_MS)
      return Math.max(retryAfterMs, transientMs * jitter)
    },
  }
}
