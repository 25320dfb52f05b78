import { type Nanos, usd, ZERO } from '../kernel/money.ts'

/** How much of everything a key may use at a time. */
export type TierLimits = {
  readonly requestsPerMinute: number
  /** Input and output together. */
  readonly tokensPerMinute: number
  readonly concurrency: number
}

export type Tier = 'free' | 'starter' | 'growth' | 'enterprise'
export type GrantedTier = 'growth' | 'enterprise'

/** Those that are earned; what an enterprise may is agreed with it. */
export const TIERS: Readonly<Record<Exclude<Tier, 'enterprise'>, TierLimits>> = {
  free: { requestsPerMinute: 60, tokensPerMinute: 60_000, concurrency: 5 },
  starter: { requestsPerMinute: 600, tokensPerMinute: 600_000, concurrency: 20 },
  growth: { requestsPerMinute: 3_000, tokensPerMinute: 3_000_000, concurrency: 50 },
}

/** How many keys that are not revoked a workspace may have in each mode. */
export const KEYS_PER_TIER: Readonly<Record<Tier, number>> = { free: 10, starter: 50, growth: 200, enterprise: 1_000 }

const GROWTH_PAID = usd('500')

/** The tier that a workspace has: what an operator granted, or what it has earned by all that it paid. */
export function tierOf(paid: Nanos, granted: GrantedTier | null): Tier {
  if (granted !== null) return granted
  if (paid >= GROWTH_PAID) return 'growth'
  return paid > ZERO ? 'starter' : 'free'
}
