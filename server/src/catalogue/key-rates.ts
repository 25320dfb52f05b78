import type { TierLimits } from './tiers.ts'

/** What limits a key, by name. */
export type LimitKind = keyof TierLimits

/** Rates of a key's own; null where its tier's alone holds. */
export type KeyRates = { readonly [Kind in LimitKind]: number | null }

/** What holds for a caller: of each limit the lesser of its tier's and its key's own. */
export type CallerLimits = TierLimits & {
  /** Of a key with rates of its own. */
  readonly from?: { readonly tier: TierLimits; readonly key: KeyRates }
}

/** The tier's own object where the key has no rates: whoever works something out by it does so once for all such keys. */
export function limitsWithin(tier: TierLimits, key: KeyRates): CallerLimits {
  const { requestsPerMinute, tokensPerMinute, concurrency } = key
  if (requestsPerMinute === null && tokensPerMinute === null && concurrency === null) return tier
  return {
    requestsPerMinute: lesser(tier.requestsPerMinute, requestsPerMinute),
    tokensPerMinute: lesser(tier.tokensPerMinute, tokensPerMinute),
    concurrency: lesser(tier.concurrency, concurrency),
    from: { tier, key },
  }
}

function lesser(tier: number, key: number | null): number {
  return key === null ? tier : Math.min(tier, key)
}

/** The tier's limit where the key's own is what holds, being lower. Undefined where the tier's holds. */
export function tierLimitAbove({ from }: CallerLimits, kind: LimitKind): number | undefined {
  if (from === undefined) return undefined
  const { tier, key } = from
  return (key[kind] ?? tier[kind]) < tier[kind] ? tier[kind] : undefined
}
