/** What is held for a stream: the most that it can cost from the start, or what it needs as it goes on. */
export const HOLDINGS = ['full', 'growing'] as const
export type Holding = (typeof HOLDINGS)[number]

/** Where neither the request nor its key says. What can't grow is held in full all the same. */
export const DEFAULT_HOLDING: Holding = 'growing'
