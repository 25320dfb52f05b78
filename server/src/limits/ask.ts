import type { CallerLimits } from '../catalogue/key-rates.ts'
import { GROUPS, type GroupName, type LimitName } from '../catalogue/limit-groups.ts'
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
const asks = new WeakMap<CallerLimits, WeakMap<readonly LimitName[], Ask>>()

/** What a call asks of its caller's limits. */
export function askOf(limits: CallerLimits, names: readonly LimitName[]): Ask {
  const ofCaller = asks.get(limits)
  const known = ofCaller?.get(names)
  if (known !== undefined) return known
  const ask = makeAsk(limits, names)
  if (ofCaller === undefined) asks.set(limits, new WeakMap([[names, ask]]))
  else ofCaller.set(names, ask)
  return ask
}

function makeAsk(limits: CallerLimits, names: readonly LimitName[]): Ask {
  const windows: Window[] = [
    // Calls without tokens are told how many are left, and are never refused for them.
    { group: ALL, seconds: SECONDS, requestLimit: limits.requestsPerMinute, tokenLimit: limits.tokensPerMinute },
  ]
  const slots: Slot[] = []
  if (isCountedAtOnce(limits, names))
    slots.push({ ...PLACE, scope: CALLS_AT_ONCE, key: ALL, limit: limits.concurrency, endsWithOwner: true })
  for (const name of names) if (name !== 'tokens' && name !== 'concurrency') addGroup(name, windows, slots)
  return { windows, slots }
}

/**
 * A tier counts those that take long. A key that has such a limit of its own counts every call, but for tasks: these go on when they
 * have been answered, and have a limit of their own.
 */
function isCountedAtOnce({ from }: CallerLimits, names: readonly LimitName[]): boolean {
  if (names.includes('concurrency')) return true
  return from !== undefined && from.key.concurrency !== null && !names.some(isOfTasks)
}

function isOfTasks(name: LimitName): boolean {
  return name !== 'tokens' && name !== 'concurrency' && 'tasksAtOnce' in GROUPS[name]
}

function addGroup(name: GroupName, windows: Window[], slots: Slot[]): void {
  const group = GROUPS[name]
  if ('requestsPerMinute' in group)
    windows.push({ group: name, seconds: SECONDS, requestLimit: group.requestsPerMinute, tokenLimit: null })
  else slots.push({ ...PLACE, scope: 'tasks', key: name, limit: group.tasksAtOnce, endsWithOwner: false })
}
