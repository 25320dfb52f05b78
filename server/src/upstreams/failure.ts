/**
 * Whether anything of the call can have reached the upstream's application. `not_sent` is certain, so the call may be voided
 * or tried elsewhere; `unknown` is whatever failed after the first byte was handed to a connection.
 */
export type Certainty = 'not_sent' | 'unknown'

const REASONS = {
  connect: 'no connection could be made in time',
  dns: 'its name could not be resolved',
  tls: 'no secure connection could be made',
  breaker: 'it is not asked now, because it kept failing or too many calls wait for it',
  headers_timeout: 'its answer did not begin in time',
  idle_timeout: 'its answer stopped coming',
  total_timeout: 'its answer did not end in time',
  reset: 'the connection was closed before its answer began or ended',
  too_large: 'its answer is larger than what is accepted',
  protocol: 'what was to be sent, or what came, is not proper HTTP',
  aborted: 'the call was given up on our side',
} as const

export type FailureReason = keyof typeof REASONS

type Details = {
  readonly reason: FailureReason
  readonly certainty: Certainty
  /** Of the answer's body. */
  readonly bytesReceived?: number
  readonly retryAfterSeconds?: number
  /** How long was waited for it. */
  readonly afterMs?: number
  readonly cause?: unknown
}

/** The only error that asking an upstream ends with. Its text holds nothing of the request or the answer. */
export class UpstreamFailure extends Error {
  /** By name. */
  readonly upstream: string
  readonly reason: FailureReason
  readonly certainty: Certainty
  readonly bytesReceived: number
  readonly afterMs: number
  readonly retryAfterSeconds: number | undefined

  constructor(upstream: string, details: Details) {
    const { reason, certainty, bytesReceived = 0, afterMs = 0, retryAfterSeconds, cause } = details
    super(`upstream ${upstream}: ${REASONS[reason]}`, { cause })
    this.name = 'UpstreamFailure'
    this.upstream = upstream
    this.reason = reason
    this.certainty = certainty
    this.bytesReceived = bytesReceived
    this.afterMs = afterMs
    this.retryAfterSeconds = retryAfterSeconds
  }
}
