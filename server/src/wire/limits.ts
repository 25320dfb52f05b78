import type { JsonLimits } from './json.ts'

/** What the edge takes from a caller before it says no. Every default is meant for the open internet. */
export type EdgeLimits = JsonLimits & {
  readonly bodyBytes: number
  /** The request line and all headers together. */
  readonly headerBytes: number
  readonly headerCount: number
  readonly urlBytes: number
  /** From the first moment of a connection, or of its next request, to the end of that request's headers. */
  readonly headersTimeoutMs: number
  /** The same, to the end of its body. */
  readonly requestTimeoutMs: number
  /** How long a connection may stay silent between two requests. */
  readonly keepAliveTimeoutMs: number
  /** How long a caller may leave an answer that waits to be written untouched. */
  readonly responseStallMs: number
  readonly connections: number
  /** Does not apply to trusted proxies, through which many callers come. */
  readonly connectionsPerAddress: number
  readonly requestsPerConnection: number
  /** How many requests may wait on one connection for those before them. */
  readonly pipelinedRequests: number
  /** How long what a caller still sends is read and thrown away after the answer, so that the answer is not lost. */
  readonly lingerMs: number
}

export const DEFAULT_LIMITS: EdgeLimits = {
  bodyBytes: 1024 * 1024,
  headerBytes: 16 * 1024,
  headerCount: 100,
  urlBytes: 8 * 1024,
  jsonDepth: 64,
  jsonNodes: 30_000,
  jsonValues: 524_288,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  // Longer than the 60 seconds that load balancers keep an idle connection, so that they close it and not we.
  keepAliveTimeoutMs: 65_000,
  responseStallMs: 60_000,
  connections: 10_000,
  connectionsPerAddress: 1_000,
  requestsPerConnection: 10_000,
  pipelinedRequests: 32,
  lingerMs: 2_000,
}
