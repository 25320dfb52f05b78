/** How often a message is tried, and how long after a failure. */
export type Retries = { readonly attempts: number; readonly leastMs: number; readonly mostMs: number }

/** Some six hours in all, which most receivers need less of to come back. */
export const RETRIES: Retries = { attempts: 18, leastMs: 5_000, mostMs: 3_600_000 }

/**
 * How long to wait after so many attempts: twice as long each time, and of that a random part from the half on, so that what failed
 * together is not tried together again.
 */
export function backoffMs(attempts: number, { leastMs, mostMs }: Retries, random: () => number): number {
  const wholeMs = Math.min(mostMs, leastMs * 2 ** Math.max(0, attempts - 1))
  return wholeMs * (0.5 + random() / 2)
}
