import { createHash } from 'node:crypto'
import { type Segment, SegmentCount } from './tokens.ts'

/** How many tokens of a request came out of the vendor's cache, and how many went into it. */
export type CacheUse = { readonly readTokens: number; readonly write5mTokens: number; readonly write1hTokens: number }

export const NO_CACHE: CacheUse = { readTokens: 0, write5mTokens: 0, write1hTokens: 0 }
const PREFIXES_LIMIT = 10_000

type Mark = { readonly key: string; readonly tokens: number; readonly cachedFor: '5m' | '1h' }

/** The vendors' memory of prompts: prefixes that were asked to be cached. It forgets the oldest, and nothing by time. */
export class Prefixes {
  readonly #known = new Set<string>()

  /** Finds the longest prefix that is known, and remembers those that end at a mark. */
  use(scope: string, segments: readonly Segment[]): CacheUse {
    const marks: Mark[] = []
    const readTokens = this.#follow(scope, segments, marks)
    const written = { '5m': 0, '1h': 0 }
    let covered = readTokens
    for (const { key, tokens, cachedFor } of marks) {
      written[cachedFor] += Math.max(0, tokens - covered)
      covered = Math.max(covered, tokens)
      this.#remember(key)
    }
    return { readTokens, write5mTokens: written['5m'], write1hTokens: written['1h'] }
  }

  /** A prefix may be known though no mark stands there now, as when a conversation has grown. */
  #follow(scope: string, segments: readonly Segment[], marks: Mark[]): number {
    const last = segments.findLastIndex(({ cachedFor }) => cachedFor !== undefined)
    const hash = createHash('sha256').update(scope)
    const count = new SegmentCount()
    let readTokens = 0
    for (const segment of segments.slice(0, last + 1)) {
      hash.update(`\n${segment.text.length}:${segment.text}`)
      count.add(segment)
      const key = hash.copy().digest('base64')
      if (this.#known.has(key)) readTokens = count.tokens()
      if (segment.cachedFor) marks.push({ key, tokens: count.tokens(), cachedFor: segment.cachedFor })
    }
    return readTokens
  }

  #remember(key: string): void {
    this.#known.delete(key)
    this.#known.add(key)
    if (this.#known.size <= PREFIXES_LIMIT) return
    for (const oldest of this.#known) {
      this.#known.delete(oldest)
      return
    }
  }
}
