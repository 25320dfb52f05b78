import type { Caller } from '../identity/caller.ts'
import { Fault } from '../kernel/fault.ts'

/**
 * Calls of an agent that can cost something need what a person has approved: what it may use, how fast, and how much it may spend in all.
 * A key says so by scopes, a rate and a budget of its own; an access token by the mandate of its grant.
 */
export function requireApproval({ scopes, limits, budget, token }: Caller): void {
  const missing = [
    ...(budget === null ? ['a budget (farebox keys budget <key> 5/month)'] : []),
    ...(scopes === null ? ['scopes (farebox keys change <key> --scopes social,models)'] : []),
    ...((limits.from?.key.requestsPerMinute ?? null) === null
      ? ['a rate of its own (farebox keys change <key> --rpm 60)']
      : []),
  ]
  if (missing.length === 0) return
  if (token !== null) throw new Fault('budget_required', { detail: NO_MANDATE })
  throw new Fault('forbidden', {
    detail: `An agent may spend only with a key that has its own budget, scopes and rate limit. This key lacks ${missing.join(', ')}.`,
  })
}

const NO_MANDATE = 'An agent may spend only within a mandate that sets an amount, operations and a rate limit.'
