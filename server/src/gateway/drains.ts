import type { Calls } from '../calls/calls.ts'
import type { Caller } from '../identity/caller.ts'
import type { Id } from '../kernel/ids.ts'

/**
 * Streams that are read to their end for callers who have left. Their places among the calls at once are free again, and they are counted
 * here instead, in each process: of one key as many as it may have at once. Any more keep their places until they have ended.
 */
export type Drains = {
  /** A caller has left a call that goes on. Call what comes back when it is over. */
  readonly begin: (caller: Pick<Caller, 'credentialId' | 'limits'>, id: Id) => () => void
}

export function createDrains({ freePlace }: Pick<Calls, 'freePlace'>): Drains {
  const counts = new Map<Id, number>()

  function change(credentialId: Id, by: 1 | -1): void {
    const count = (counts.get(credentialId) ?? 0) + by
    if (count === 0) counts.delete(credentialId)
    else counts.set(credentialId, count)
  }

  return {
    begin({ credentialId, limits }, id) {
      if ((counts.get(credentialId) ?? 0) >= limits.concurrency) return () => {}
      change(credentialId, 1)
      freePlace(id)
      return () => change(credentialId, -1)
    },
  }
}
