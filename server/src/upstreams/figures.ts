import { LRUCache } from 'lru-cache'
import type { Clock } from '../kernel/clock.ts'

/** How upstreams have answered this process in the last minutes, the running one included: counts, and times to the first byte of a stream or the last one of any other answer. */
export type UpstreamFigures = {
  /** Notes a request that was sent; a request that the breaker refused was not. */
  readonly note: (upstreamId: string, ms: number, isFailed: boolean) => void
  readonly of: (upstreamId: string) => Figures
}

export type Figures = {
  readonly asked: number
  readonly failed: number
  /** Null where nothing was asked. */
  readonly p50Ms: number | null
  readonly p95Ms: number | null
}

type Parts = { readonly clock: Pick<Clock, 'monotonicMs'>; readonly minutes: number }

const MINUTE_MS = 60_000
const MAX_UPSTREAMS = 4_096
/** Four to a doubling, up to 17 minutes: a time is known to a tenth. */
const STEPS = 4
const BUCKETS = 80

class Minute {
  minute = -1
  asked = 0
  failed = 0
  readonly times = new Uint32Array(BUCKETS)

  begin(minute: number): void {
    this.minute = minute
    this.asked = 0
    this.failed = 0
    this.times.fill(0)
  }
}

export function createUpstreamFigures({ clock, minutes: kept }: Parts): UpstreamFigures {
  const upstreams = new LRUCache<string, readonly Minute[]>({ max: MAX_UPSTREAMS })

  function ringOf(upstreamId: string): readonly Minute[] {
    const known = upstreams.get(upstreamId)
    if (known !== undefined) return known
    const made = Array.from({ length: kept }, () => new Minute())
    upstreams.set(upstreamId, made)
    return made
  }

  return {
    note(upstreamId, ms, isFailed) {
      const now = Math.floor(clock.monotonicMs() / MINUTE_MS)
      const place = ringOf(upstreamId)[now % kept]
      if (place === undefined) return
      if (place.minute !== now) place.begin(now)
      place.asked += 1
      if (isFailed) place.failed += 1
      const bucket = bucketOf(ms)
      place.times[bucket] = (place.times[bucket] ?? 0) + 1
    },
    of(upstreamId) {
      const first = Math.floor(clock.monotonicMs() / MINUTE_MS) - kept
      const minutes = (upstreams.peek(upstreamId) ?? []).filter(({ minute }) => minute > first)
      const asked = minutes.reduce((sum, one) => sum + one.asked, 0)
      const failed = minutes.reduce((sum, one) => sum + one.failed, 0)
      return { asked, failed, p50Ms: quantile(minutes, asked, 0.5), p95Ms: quantile(minutes, asked, 0.95) }
    },
  }
}

function bucketOf(ms: number): number {
  return Math.min(BUCKETS - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, ms)) * STEPS)))
}

/** The middle of the bucket that so many are within. */
function quantile(minutes: readonly Minute[], count: number, share: number): number | null {
  if (count === 0) return null
  let left = Math.ceil(count * share)
  for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
    left -= minutes.reduce((sum, { times }) => sum + (times[bucket] ?? 0), 0)
    if (left <= 0) return Math.round(2 ** ((bucket + 0.5) / STEPS))
  }
  return null
}
