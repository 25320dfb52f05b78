import { z } from 'zod'
import { TIERS, type TierLimits, tierOf } from '../catalogue/tiers.ts'
import { nanos } from '../kernel/money.ts'

/** What a workspace has paid, and what an operator agreed to beyond what that earns. */
export const TIER_COLUMNS = 'w.tier_granted, w.requests_per_minute, w.tokens_per_minute, w.concurrency'

export const tierRow = z.object({
  paid: z.bigint(),
  tier_granted: z.enum(['growth', 'enterprise']).nullable(),
  requests_per_minute: z.int().nullable(),
  tokens_per_minute: z.bigint().nullable(),
  concurrency: z.int().nullable(),
})

type TierRow = z.output<typeof tierRow>

export function tierIn(row: TierRow): ReturnType<typeof tierOf> {
  return tierOf(nanos(row.paid), agreedIn(row))
}

/** Null where nothing was agreed. */
export function agreedIn(row: Omit<TierRow, 'paid'>): TierLimits | null {
  if (row.tier_granted === 'growth') return TIERS.growth
  const { requests_per_minute: requestsPerMinute, tokens_per_minute: tokens, concurrency } = row
  if (requestsPerMinute === null || tokens === null || concurrency === null) return null
  return { requestsPerMinute, tokensPerMinute: Number(tokens), concurrency }
}
