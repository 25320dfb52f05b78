import { GROUPS, type GroupName, type LimitName } from '../catalogue/limit-groups.ts'
import type { TierLimits } from '../catalogue/tiers.ts'
import type { Window } from './window.ts'

/** A place among so many at once. */
export type Slot = {
  readonly scope: string
  readonly key: string
  readonly limit: number
  /** A place is like any other, and ends with its call. */
  readonly fingerprint: ''
  readonly keepSeconds: 0
  /** Whether it is free when the process that runs the call dies; a task goes on without the process. */
  readonly endsWithOwner: boolean
}

export type Ask = { readonly windows: readonly Window[]; readonly slots: readonly Slot[] }

const SECONDS = 60
const PLACE = { fingerprint: '', keepSeconds: 0 } as const
/** The window that counts every request of a credential. */
export const ALL = 'all'
export const CALLS_AT_ONCE = 'concurrency'

/** Asked for several times a call: the same limits and the same operation ask the same. */
const asks = new WeakMap<TierLimits, WeakMap<readonly LimitName[], Ask>>()

/** What a call asks of its caller's limits. */
export function askOf(tier: TierLimits, names: readonly LimitName[]): Ask {
  const ofTier = asks.get(tier)
  const known = ofTier?.get(names)
  if (known !== undefined) return known
  const ask = makeAsk(tier, names)
  if (ofTier === undefined) asks.set(tier, new WeakMap([[names, ask]]))
  else ofTier.set(names, ask)
  return ask
}

function makeAsk(tier: TierLimits, names: readonly LimitName[]): Ask {
  const windows: Window[] = [
    // Calls without tokens are told how many are left, and are never refused for them.
    { group: ALL, seconds: SECONDS, requestLimit: tier.requestsPerMinute, tokenLimit: tier.tokensPerMinute },
  ]
  const slots: Slot[] = []
  for (const name of names) {
    if (name === 'tokens') continue
    if (name === 'concurrency')
      slots.push({ ...PLACE, scope: CALLS_AT_ONCE, key: ALL, limit: tier.concurrency, endsWithOwner: true })
    else addGroup(name, windows, slots)
  }
  return { windows, slots }
}

function addGroup(name: GroupName, windows: Window[], slots: Slot[]): void {
  const group = GROUPS[name]
  if ('requestsPerMinute' in group)
    windows.push({ group: name, seconds: SECONDS, requestLimit: group.requestsPerMinute, tokenLimit: null })
  else slots.push({ ...PLACE, scope: 'tasks', key: name, limit: group.tasksAtOnce, endsWithOwner: false })
}
