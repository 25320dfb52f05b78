import { estimateTokens } from '../upstreams/protocols/estimate.ts'
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

export function createOutputGuard({ counter, tokenizer, limit }: Parts): OutputGuard {
  return {
    limit,
    quietBytes: QUIET_BYTES_PER_TOKEN * limit + QUIET_BYTES,
    async isPassed(text, bytes) {
      // An honest answer must not be cut because the tokenizer is far from its vocabulary, so that a lower estimate is
      // taken instead: down to half of the count, because an estimate knows ordinary text only.
      const count = await counter.count(text, tokenizer)
      const tokens = Math.min(count, Math.max(estimateTokens(text), count / 2))
      const share = bytes / Math.max(1, Buffer.byteLength(text))
      return tokens * Math.max(1, share) > MARGIN * limit + MARGIN_TOKENS
    },
  }
}
