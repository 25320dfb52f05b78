import { type Nanos, usd, ZERO } from '../kernel/money.ts'

/** How much of everything a key may use at a time. */
export type TierLimits = {
  readonly requestsPerMinute: number
  /** Input and output together. */
  readonly tokensPerMinute: number
  readonly concurrency: number
}

export type Tier = 'free' | 'starter' | 'growth' | 'enterprise'

/** Those that are earned; what an enterprise may is agreed with it. */
export const TIERS: Readonly<Record<Exclude<Tier, 'enterprise'>, TierLimits>> = {
  free: { requestsPerMinute: 60, tokensPerMinute: 60_000, concurrency: 5 },
  starter: { requestsPerMinute: 600, tokensPerMinute: 600_000, concurrency: 20 },
  growth: { requestsPerMinute: 3_000, tokensPerMinute: 3_000_000, concurrency: 50 },
}

const EARNED_TIERS = ['free', 'starter', 'growth'] as const

/** How many keys that are not revoked a workspace may have in each mode. */
export const KEYS_PER_TIER: Readonly<Record<Tier, number>> = { free: 10, starter: 50, growth: 200, enterprise: 1_000 }

const GROWTH_PAID = usd('500')

type TierAndLimits = { readonly tier: Tier; readonly limits: TierLimits }

/** What is in force: limit by limit, the better of what all payments have earned and what an operator agreed to. */
export function tierOf(paid: Nanos, agreed: TierLimits | null): TierAndLimits {
  const earned = TIERS[earnedBy(paid)]
  const limits = agreed === null ? earned : betterOf(earned, agreed)
  return { tier: EARNED_TIERS.find((tier) => areEqual(TIERS[tier], limits)) ?? 'enterprise', limits }
}

function earnedBy(paid: Nanos): keyof typeof TIERS {
  if (paid >= GROWTH_PAID) return 'growth'
  return paid > ZERO ? 'starter' : 'free'
}

export function betterOf(one: TierLimits, other: TierLimits): TierLimits {
  return {
    requestsPerMinute: Math.max(one.requestsPerMinute, other.requestsPerMinute),
    tokensPerMinute: Math.max(one.tokensPerMinute, other.tokensPerMinute),
    concurrency: Math.max(one.concurrency, other.concurrency),
  }
}

/** The concurrent calls of the highest tier whose requests and tokens are within these, so that a tier's numbers give all that it has. */
export function concurrencyFor({ requestsPerMinute, tokensPerMinute }: Omit<TierLimits, 'concurrency'>): number {
  const within = EARNED_TIERS.filter(
    (tier) => TIERS[tier].requestsPerMinute <= requestsPerMinute && TIERS[tier].tokensPerMinute <= tokensPerMinute,
  )
  return TIERS[within.at(-1) ?? 'free'].concurrency
}

function areEqual(one: TierLimits, other: TierLimits): boolean {
  return (
    one.requestsPerMinute === other.requestsPerMinute &&
    one.tokensPerMinute === other.tokensPerMinute &&
    one.concurrency === other.concurrency
  )
}
