import { createRecentMap } from './recent-map.ts'

const MINUTE_MS = 60_000

/** Counts what each of many does within a minute of its first. Those that did nothing for longest are forgotten first. */
export function createMinuteCounts<Key>(mostKnown: number) {
  const counts = createRecentMap<Key, { made: number; readonly endsAtMs: number }>(mostKnown)

  /** Counts one more; where that were more than allowed it is not counted, and the seconds to wait are returned. */
  return function take(key: Key, most: number, nowMs: number): number | undefined {
    const known = counts.get(key)
    const own = known !== undefined && known.endsAtMs > nowMs ? known : { made: 0, endsAtMs: nowMs + MINUTE_MS }
    if (own.made >= most) return Math.max(1, Math.ceil((own.endsAtMs - nowMs) / 1_000))
    own.made += 1
    counts.set(key, own)
    return undefined
  }
}
