import type { Rate, Rates } from './window.ts'

export const RATE_HEADERS = [
  'X-RateLimit-Limit-Requests',
  'X-RateLimit-Remaining-Requests',
  'X-RateLimit-Reset-Requests',
  'X-RateLimit-Limit-Tokens',
  'X-RateLimit-Remaining-Tokens',
  'X-RateLimit-Reset-Tokens',
] as const

/** What the tightest of a call's limits leaves, in the headers of its answer. A reset is in Unix seconds, never too early. */
export function rateHeaders({ requests, tokens }: Rates): Record<string, string> {
  return { ...(requests && requestHeaders(requests)), ...(tokens && tokenHeaders(tokens)) }
}

function requestHeaders({ limit, left, resetAtMs }: Rate): Record<string, string> {
  return {
    'X-RateLimit-Limit-Requests': String(limit),
    'X-RateLimit-Remaining-Requests': String(left),
    'X-RateLimit-Reset-Requests': String(Math.ceil(resetAtMs / 1_000)),
  }
}

function tokenHeaders({ limit, left, resetAtMs }: Rate): Record<string, string> {
  return {
    'X-RateLimit-Limit-Tokens': String(limit),
    'X-RateLimit-Remaining-Tokens': String(left),
    'X-RateLimit-Reset-Tokens': String(Math.ceil(resetAtMs / 1_000)),
  }
}
