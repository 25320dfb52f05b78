import type { Id } from '../kernel/ids.ts'

/** Something of a long list, and the id behind which the next portion begins. */
export type Listed = { readonly after: Id }
type List<Found extends Listed> = (after: Id | null, limit: number) => Promise<readonly Found[]>
type Look<Found extends Listed> = (found: readonly Found[]) => Promise<readonly unknown[]>

const PORTION = 500
const PORTIONS_MOST = 10

/**
 * Goes through long lists, at most 5,000 things at a time, and on from there the next time. So a look costs the same however many there are; it takes longer to come
 * round. It ends where it has come round. Says what failed, which keeps nobody of another list waiting.
 */
export function createRounds<Found extends Listed>(
  lists: readonly List<Found>[],
  look: Look<Found>,
): () => Promise<readonly unknown[]> {
  const walks = lists.map((list) => createWalk(list, look))
  let at = 0
  return async () => {
    const failures: unknown[] = []
    for (let portions = 0; portions < PORTIONS_MOST; portions += 1) {
      const step = await walks[at]?.()
      failures.push(...(step?.failures ?? []))
      if (step?.isOver === false) continue
      at = (at + 1) % walks.length
      if (at === 0) break
    }
    return failures
  }
}

/**
 * Through one list, a portion with each step; whether the next list is due. A portion that can not be read is tried once more when the list has its turn again. If it fails
 * again, the list is begun anew: what is before it is looked at all the same, and what is behind it is not until it can be read.
 */
function createWalk<Found extends Listed>(list: List<Found>, look: Look<Found>) {
  let after: Id | null = null
  let failed = false
  return async (): Promise<{ readonly failures: readonly unknown[]; readonly isOver: boolean }> => {
    let found: readonly Found[]
    try {
      found = await list(after, PORTION)
    } catch (error) {
      if (failed) after = null
      failed = !failed
      return { failures: [error], isOver: true }
    }
    failed = false
    after = found.length < PORTION ? null : (found.at(-1)?.after ?? null)
    const failures = found.length === 0 ? [] : await look(found).catch((error: unknown) => [error])
    return { failures, isOver: after === null }
  }
}
