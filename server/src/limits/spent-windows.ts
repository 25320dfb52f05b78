import type { Clock } from '../kernel/clock.ts'
import type { Id } from '../kernel/ids.ts'
import { createRecentMap } from '../kernel/recent-map.ts'
import type { Rates, Window } from './window.ts'

/**
 * Windows of which PostgreSQL said that their requests are spent. Until they end, a call is refused from here, at no
 * cost to anybody else; whatever changes about the credential makes it forget.
 */
export type SpentWindows = {
  /** The rates that were told with the refusal, if one of these windows is known to be spent. */
  readonly find: (credentialId: Id, windows: readonly Window[]) => Spent | undefined
  readonly note: (credentialId: Id, window: Window, rates: Rates) => void
  readonly forget: (credentialId: Id) => void
  readonly forgetAll: () => void
}

export type Spent = { readonly window: Window; readonly rates: Rates; readonly untilMs: number }

type Parts = {
  /** PostgreSQL's time: windows end by its clock. */
  readonly time: Pick<Clock, 'nowMs'>
  readonly maxCredentials?: number
}

export function createSpentWindows({ time, maxCredentials = 100_000 }: Parts): SpentWindows {
  const known = createRecentMap<Id, Map<string, Spent>>(maxCredentials)
  return {
    find(credentialId, windows) {
      const groups = known.get(credentialId)
      if (groups === undefined) return undefined
      for (const { group, requestLimit } of windows) {
        const spent = groups.get(group)
        if (spent === undefined) continue
        if (spent.untilMs > time.nowMs() && spent.window.requestLimit === requestLimit) return spent
        groups.delete(group)
      }
      return undefined
    },
    note(credentialId, window, rates) {
      if (rates.requests === null || rates.requests.left > 0) return
      const groups = known.get(credentialId) ?? new Map<string, Spent>()
      known.set(credentialId, groups.set(window.group, { window, rates, untilMs: rates.requests.resetAtMs }))
    },
    forget: (credentialId) => void known.delete(credentialId),
    forgetAll: () => known.clear(),
  }
}
