import { createHash } from 'node:crypto'
import { type Segment, SegmentCount } from './tokens.ts'

/** How many tokens of a request came out of the vendor's cache, and how many went into it. */
export type CacheUse = { readonly readTokens: number; readonly write5mTokens: number; readonly write1hTokens: number }

/** Shorter prompts are not cached. */
export const CACHED_FROM_TOKENS = 1_024
/** What is cached by itself is cached in steps of so many. */
export const AUTOMATIC_STEP_TOKENS = 128
/** For so long after it was used last. */
export const LIVES_MS = { '5m': 5 * 60_000, '1h': 60 * 60_000 } as const
export const PREFIXES_LIMIT = 50_000

type Life = keyof typeof LIVES_MS
/** Where a prefix ends, and for how long it is to be cached, if at all. */
type End = { readonly key: string; readonly tokens: number; readonly cachedFor: Life | undefined }
type Known = { readonly life: Life; readonly untilMs: number }

export type CacheLookUp = {
  /** Whose cache it is: a vendor, an account there, a model. */
  readonly scope: string
  readonly segments: readonly Segment[]
  /** Whether every prefix is cached, and not those alone that end at a mark. */
  readonly isAutomatic: boolean
  readonly nowMs: number
}

/** The vendors' memory of prompts. It forgets what was not used for its life, and of too many the oldest. */
export class Prefixes {
  readonly #known = new Map<string, Known>()

  /** Finds the longest prefix that is known, and remembers those that are to be cached. */
  use({ scope, segments, isAutomatic, nowMs }: CacheLookUp): CacheUse {
    const ends = endsOf(scope, segments, isAutomatic)
    const read = ends.findLast(({ key }) => (this.#known.get(key)?.untilMs ?? 0) > nowMs)
    const readTokens = read?.tokens ?? 0
    const written = { '5m': 0, '1h': 0 }
    let covered = readTokens
    for (const { key, tokens, cachedFor } of ends) {
      const life = cachedFor ?? (key === read?.key ? this.#known.get(key)?.life : undefined)
      if (life === undefined) continue
      written[life] += Math.max(0, tokens - covered)
      covered = Math.max(covered, tokens)
      this.#remember(key, { life, untilMs: nowMs + LIVES_MS[life] })
    }
    return { readTokens, write5mTokens: written['5m'], write1hTokens: written['1h'] }
  }

  #remember(key: string, known: Known): void {
    this.#known.delete(key)
    this.#known.set(key, known)
    if (this.#known.size <= PREFIXES_LIMIT) return
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest)
      return
    }
  }
}

/**
 * The prefixes that are long enough, each by its end, the longest last. One may be known though no mark stands at its end now, as when a
 * conversation has grown.
 */
function endsOf(scope: string, segments: readonly Segment[], isAutomatic: boolean): readonly End[] {
  const last = isAutomatic ? segments.length : segments.findLastIndex(({ cachedFor }) => cachedFor !== undefined) + 1
  const step = isAutomatic ? AUTOMATIC_STEP_TOKENS : 1
  const hash = createHash('sha256').update(scope)
  const count = new SegmentCount()
  return segments.slice(0, last).flatMap((segment) => {
    hash.update(`\n${segment.text.length}:${segment.text}`)
    count.add(segment)
    const tokens = Math.floor(count.tokens() / step) * step
    if (tokens < CACHED_FROM_TOKENS) return []
    return [{ key: hash.copy().digest('base64'), tokens, cachedFor: isAutomatic ? '5m' : segment.cachedFor }]
  })
}
