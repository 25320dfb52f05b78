import type { Counts, Terms } from './terms.ts'

/** What a call costs, worked out before anything is held. */
export type Priced = {
  readonly terms: Terms
  /** What is held for. No charge exceeds it. */
  readonly most: Counts
  /** What a quote estimates. */
  readonly expected: () => Counts
  /** Whether the two are the same, whatever the upstream does. */
  readonly isExact: boolean
  /** What the estimate takes for granted, as a sentence for the caller; left out where the price is exact. */
  readonly assumption?: (() => string) | undefined
}

/** How much was used. */
export type Measured = {
  readonly counts: Counts
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly cacheReadTokens?: number
  readonly cacheWriteTokens?: number
  /** Who counted the tokens: the upstream, or we, by what was delivered. */
  readonly source?: 'provider' | 'counted'
}
