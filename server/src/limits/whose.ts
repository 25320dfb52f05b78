import { type CallerLimits, type LimitKind, tierLimitAbove } from '../catalogue/key-rates.ts'
import { ALL } from './ask.ts'

/** Whose limit refuses a call: the key's own, its tier's, or one that an endpoint has for every key. */
export type Whose =
  | { readonly limitedBy: 'key'; readonly tierLimit: number }
  | { readonly limitedBy: 'tier' | 'endpoint' }

/** Whose a window or a set of places is, by its name. */
export function whoseIs(limits: CallerLimits, name: string, kind: LimitKind): Whose {
  if (name !== ALL) return { limitedBy: 'endpoint' }
  const tierLimit = tierLimitAbove(limits, kind)
  return tierLimit === undefined ? { limitedBy: 'tier' } : { limitedBy: 'key', tierLimit }
}
