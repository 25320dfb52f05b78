import type { Rates } from './window.ts'

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
  const headers: Record<string, string> = {}
  for (const [what, rate] of [
    ['Requests', requests],
    ['Tokens', tokens],
  ] as const) {
    if (rate === null) continue
    headers[`X-RateLimit-Limit-${what}`] = String(rate.limit)
    headers[`X-RateLimit-Remaining-${what}`] = String(rate.left)
    headers[`X-RateLimit-Reset-${what}`] = String(Math.ceil(rate.resetAtMs / 1_000))
  }
  return headers
}
