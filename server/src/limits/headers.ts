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

/** The same by the names that one protocol has for them, for its SDKs and those who read them. */
export const ANTHROPIC_RATES = {
  'anthropic-ratelimit-requests-limit': 'X-RateLimit-Limit-Requests',
  'anthropic-ratelimit-requests-remaining': 'X-RateLimit-Remaining-Requests',
  'anthropic-ratelimit-requests-reset': 'X-RateLimit-Reset-Requests',
  'anthropic-ratelimit-tokens-limit': 'X-RateLimit-Limit-Tokens',
  'anthropic-ratelimit-tokens-remaining': 'X-RateLimit-Remaining-Tokens',
  'anthropic-ratelimit-tokens-reset': 'X-RateLimit-Reset-Tokens',
} as const satisfies Readonly<Record<string, (typeof RATE_HEADERS)[number]>>

export const ANTHROPIC_RATE_HEADERS = [
  'anthropic-ratelimit-requests-limit',
  'anthropic-ratelimit-requests-remaining',
  'anthropic-ratelimit-requests-reset',
  'anthropic-ratelimit-tokens-limit',
  'anthropic-ratelimit-tokens-remaining',
  'anthropic-ratelimit-tokens-reset',
] as const

/** Headers with those of the protocol beside ours, as far as those are there. */
export function withAnthropicRates(headers: Readonly<Record<string, string>>): Record<string, string> {
  const both = { ...headers }
  for (const name of ANTHROPIC_RATE_HEADERS) {
    const value = headers[ANTHROPIC_RATES[name]]
    if (value !== undefined) both[name] = name.endsWith('-reset') ? timeOf(value) : value
  }
  return both
}

function timeOf(seconds: string): string {
  return new Date(Number(seconds) * 1_000).toISOString().replace('.000Z', 'Z')
}
