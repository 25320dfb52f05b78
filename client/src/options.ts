import type { Fetch } from './attempt.ts'
import type { Clock } from './clock.ts'
import type { Quote } from './contract.ts'

export type FareboxOptions = {
  /** A key, or an access token. */
  readonly apiKey: string
  /** Where the gateway is, such as `https://gateway.example.com`. */
  readonly baseUrl: string
  /** For `account`: what a member sees and changes of a workspace. */
  readonly account?: AccountOptions
  /** The most that any call may cost, in decimal USD, such as `'0.05'`. A call can set its own. */
  readonly maxCostUsd?: string
  /**
   * How long an answer may take, in milliseconds. 290,000 by default: Node's own `fetch` gives up after 300 s without headers, whatever is
   * said here. Who waits longer there also gives a `fetch` with another dispatcher. What is late is looked up, and told as what it became.
   */
  readonly timeoutMs?: number
  /** How often a request is sent again at the most, where that is safe. 4 by default. */
  readonly maxRetries?: number
  /** The longest Retry-After that is waited for, in milliseconds. One minute by default; who is told to wait longer is told so. */
  readonly maxWaitMs?: number
  /** Words that the operator has chosen otherwise: the one in names of headers, and those in paths. */
  readonly names?: Names
  /** For a proxy, a test, or a runtime with a `fetch` of its own. */
  readonly fetch?: Fetch
  /** Time and chance, for tests. */
  readonly clock?: Clock
  readonly random?: () => number
}

export type AccountOptions = {
  /** Where the website is, such as `https://www.example.com`. */
  readonly siteUrl: string
  /** An access token for the account API. */
  readonly token: string
}

export type Names = {
  readonly provider?: string
  readonly social_a?: string
  readonly social_b?: string
  readonly social_c?: string
  readonly reseller?: string
  readonly traffic_analytics?: string
  readonly deep_research?: string
}

/** What can be said of any request. */
export type RequestOptions = {
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  readonly maxRetries?: number
}

/** What can be said of a call that is paid for. */
export type CallOptions = RequestOptions & {
  /** The most that the call may cost, in decimal USD. A higher price is refused before any spend. */
  readonly maxCostUsd?: string
  /** A quote by which it is charged: never more than its `max`, and once. */
  readonly quote?: Pick<Quote, 'quote_id'>
  /** Your own key, such as the id of an order: calls with the same key and input are executed once. Made up where there is none. */
  readonly idempotencyKey?: string
}

export const DEFAULTS = { timeoutMs: 290_000, maxRetries: 4, maxWaitMs: 60_000 } as const
