import { estimateTokens } from '../protocols/estimate.ts'
import type { TokenCounter, Tokenizer } from '../upstreams/tokens/count-tokens.ts'

/** Tells whether a stream has more output than the limit that was sent with its request. */
export type OutputGuard = {
  /** In tokens, of all choices together. */
  readonly limit: number
  /** Below so many bytes of text nothing has to be counted. */
  readonly quietBytes: number
  /** Whether it is certain that so much is beyond the limit. The text is its start where not all of it was kept. */
  readonly isPassed: (text: string, bytes: number) => Promise<boolean>
}

type Parts = {
  readonly counter: Pick<TokenCounter, 'count'>
  readonly tokenizer: Tokenizer
  /** Of all choices together. */
  readonly limit: number
}

/** More bytes than a token of ordinary text has, so that an answer which keeps to its limit is hardly ever counted. */
const QUIET_BYTES_PER_TOKEN = 6
const QUIET_BYTES = 4_096
/** Nobody knows the upstream's tokenizer, and one with a larger vocabulary makes fewer tokens of the same text. */
const MARGIN = 1.5
const MARGIN_TOKENS = 256

/**
 * A tokenizer takes the square of the time for one long run of letters or of space, until nobody waits for it and an estimate
 * is all there is. So a long text is counted by some parts of it.
 */
const PART_LENGTH = 4_096
const PARTS_MOST = 8

export function createOutputGuard({ counter, tokenizer, limit }: Parts): OutputGuard {
  return {
    limit,
    quietBytes: QUIET_BYTES_PER_TOKEN * limit + QUIET_BYTES,
    async isPassed(text, bytes) {
      let tokens = 0
      let countedBytes = 0
      for (const part of partsOf(text)) {
        // An honest answer must not be cut because the tokenizer is far from its vocabulary, so that a lower estimate is
        // taken instead: down to half of the count, because an estimate knows ordinary text only.
        const count = await counter.count(part, tokenizer)
        tokens += Math.min(count, Math.max(estimateTokens(part), count / 2))
        countedBytes += Buffer.byteLength(part)
      }
      const share = bytes / Math.max(1, countedBytes)
      return tokens * Math.max(1, share) > MARGIN * limit + MARGIN_TOKENS
    },
  }
}

/** All of a text that is short enough; else parts that are spread over it. */
function partsOf(text: string): readonly string[] {
  const parts = Math.min(PARTS_MOST, Math.ceil(text.length / PART_LENGTH))
  const step = Math.ceil(text.length / parts)
  return Array.from({ length: parts }, (_, at) => text.slice(at * step, at * step + Math.min(step, PART_LENGTH)))
}
