import type { Clock } from '../kernel/clock.ts'
import { createRecentMap } from '../kernel/recent-map.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { ChangeFeed } from './change-feed.ts'

export type Cache<V> = {
  /** The value, or undefined where there is none. Rejects when it has to be loaded and that fails. */
  readonly get: (key: string) => Promise<V | undefined>
  /** The value if it is here and may be served, at once. */
  readonly peek: (key: string) => V | undefined
  /** The value as it is now. Whoever asks meanwhile waits for the same load. */
  readonly reload: (key: string) => Promise<V | undefined>
  readonly close: () => void
}

/** What every cache of a process is made of. */
export type CacheParts = {
  readonly feed: Pick<ChangeFeed, 'subscribe' | 'lagMs'>
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'cacheLoads'>
}

type Parts<V> = CacheParts & {
  readonly name: string
  /** The topic of the change log under which keys of this cache are recorded. */
  readonly topic: string
  /** Reads from the primary; a replica could give back what a change had already replaced. */
  readonly load: (key: string) => Promise<V | undefined>
  readonly maxEntries: number
  /** How many keys without a value are remembered. They have a place of their own, so that guesses evict no value. */
  readonly maxAbsent?: number
  readonly maxStaleMs?: number
}

type Entry<V> = { readonly value: V; readonly loadedAtMs: number }

/**
 * Values of PostgreSQL in memory. A value is served only if within the last `maxStaleMs` it was loaded, or the change
 * feed was read to its end without naming it; so in an outage of the feed values are loaded again, and in one of PostgreSQL
 * the look-up fails instead of serving what may be long revoked.
 */
export function createCache<V extends NonNullable<unknown>>(parts: Parts<V>): Cache<V> {
  const { name, topic, load, feed, clock, metrics, maxEntries, maxAbsent = maxEntries, maxStaleMs = 1_000 } = parts
  const present = createRecentMap<string, Entry<V>>(maxEntries)
  const absent = createRecentMap<string, Entry<undefined>>(maxAbsent)
  const loading = new Map<string, Promise<V | undefined>>()

  function isTrusted({ loadedAtMs }: Entry<unknown>): boolean {
    return feed.lagMs() <= maxStaleMs || clock.monotonicMs() - loadedAtMs <= maxStaleMs
  }

  function forget(key: string): void {
    present.delete(key)
    absent.delete(key)
    // A load that is under way may have read what was there before the change: it serves those who already wait for
    // it, and is no longer the one that later callers join or whose value is kept.
    loading.delete(key)
  }

  function startLoad(key: string): Promise<V | undefined> {
    metrics.cacheLoads.inc({ cache: name })
    const loadedAtMs = clock.monotonicMs()
    const value = Promise.resolve(key).then(load)
    loading.set(key, value)
    // False where a change or a reset came meanwhile.
    const isStillWanted = () => loading.get(key) === value && loading.delete(key)
    value.then((loaded) => {
      if (isStillWanted()) keep(key, loaded, loadedAtMs)
    }, isStillWanted)
    return value
  }

  function keep(key: string, value: V | undefined, loadedAtMs: number): void {
    if (value === undefined) {
      present.delete(key)
      absent.set(key, { value, loadedAtMs })
    } else {
      absent.delete(key)
      present.set(key, { value, loadedAtMs })
    }
  }

  const unsubscribe = feed.subscribe(topic, {
    changed: forget,
    reset() {
      present.clear()
      absent.clear()
      loading.clear()
    },
  })

  return {
    async get(key) {
      const entry = present.get(key) ?? absent.get(key)
      if (entry !== undefined && isTrusted(entry)) return entry.value
      return loading.get(key) ?? startLoad(key)
    },
    peek(key) {
      const entry = present.get(key)
      return entry !== undefined && isTrusted(entry) ? entry.value : undefined
    },
    reload: (key) => loading.get(key) ?? startLoad(key),
    close: unsubscribe,
  }
}
