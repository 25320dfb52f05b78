export type RecentMap<K, V> = {
  readonly get: (key: K) => V | undefined
  readonly has: (key: K) => boolean
  readonly set: (key: K, value: V) => void
  readonly delete: (key: K) => void
  readonly clear: () => void
  readonly size: () => number
}

/**
 * A map with a bound: it keeps the half of `max` that was used last, and never more than `max`. There are two generations. What is
 * used moves to the young one; when that is half of the bound, it becomes the old one, and what was left in the old one is gone. It
 * takes room for what is in it, where a list in the order of use takes room for all that could be, in every process from its start.
 * Where values differ in size, `weigh` says what each counts; what is beyond half of the bound by itself is not kept.
 */
export function createRecentMap<K, V extends NonNullable<unknown>>(
  max: number,
  weigh: (value: V) => number = () => 1,
): RecentMap<K, V> {
  const half = Math.max(1, Math.floor(max / 2))
  let young = new Map<K, V>()
  let old = new Map<K, V>()
  let weight = 0

  function remove(key: K): void {
    old.delete(key)
    const known = young.get(key)
    if (known === undefined) return
    young.delete(key)
    weight -= weigh(known)
  }

  function grow(): void {
    old = young
    young = new Map()
    weight = 0
  }

  function set(key: K, value: V): void {
    remove(key)
    const added = weigh(value)
    if (added > half) return
    if (weight + added > half) grow()
    young.set(key, value)
    weight += added
    if (weight >= half) grow()
  }

  return {
    get(key) {
      const value = young.get(key)
      if (value !== undefined) return value
      const kept = old.get(key)
      if (kept !== undefined) set(key, kept)
      return kept
    },
    has: (key) => young.has(key) || old.has(key),
    set,
    delete: remove,
    clear() {
      young = new Map()
      old = new Map()
      weight = 0
    },
    size: () => young.size + old.size,
  }
}
