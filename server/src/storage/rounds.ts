import type { Id } from '../kernel/ids.ts'

/** Something of a long list, and the id behind which the next portion begins. */
export type Listed = { readonly after: Id }
type List<Found extends Listed> = (after: Id | null, limit: number) => Promise<readonly Found[]>

const PORTION = 500
const PORTIONS_MOST = 10

/**
 * Goes through long lists, at most 5,000 things at a time, and on from there the next time. So a look costs the same however many there are; it takes longer to come
 * round. It ends where it has come round. Says what failed, which keeps nobody behind it waiting.
 */
export function createRounds<Found extends Listed>(
  lists: readonly List<Found>[],
  look: (found: readonly Found[]) => Promise<readonly unknown[]>,
): () => Promise<readonly unknown[]> {
  let at = 0
  let after: Id | null = null
  return async () => {
    const failures: unknown[] = []
    for (let portions = 0; portions < PORTIONS_MOST; portions += 1) {
      const found = await portion(lists[at], after).catch((error: unknown) => {
        failures.push(error)
        return []
      })
      after = found.length < PORTION ? null : (found.at(-1)?.after ?? null)
      if (found.length > 0) failures.push(...(await look(found).catch((error: unknown) => [error])))
      if (after !== null) continue
      at = (at + 1) % lists.length
      if (at === 0) break
    }
    return failures
  }
}

async function portion<Found extends Listed>(list: List<Found> | undefined, after: Id | null) {
  return (await list?.(after, PORTION)) ?? []
}
