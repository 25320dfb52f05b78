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
  const headers: Record<string, string> = {}
  if (requests !== null) {
    headers['X-RateLimit-Limit-Requests'] = String(requests.limit)
    headers['X-RateLimit-Remaining-Requests'] = String(requests.left)
    headers['X-RateLimit-Reset-Requests'] = resetOf(requests)
  }
  if (tokens !== null) {
    headers['X-RateLimit-Limit-Tokens'] = String(tokens.limit)
    headers['X-RateLimit-Remaining-Tokens'] = String(tokens.left)
    headers['X-RateLimit-Reset-Tokens'] = resetOf(tokens)
  }
  return headers
}

function resetOf({ resetAtMs }: Rate): string {
  return String(Math.ceil(resetAtMs / 1_000))
}
