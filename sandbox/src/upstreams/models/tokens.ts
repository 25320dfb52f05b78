/** What a model's vendor counts: one token for every 3 bytes of UTF-8 of all texts together, and so many for an image. */
export const BYTES_PER_TOKEN = 3
export const IMAGE_TOKENS = 256

/** One text or image of what a model is asked, in the order in which a vendor's cache sees them. */
export type Segment = {
  readonly text: string
  readonly isImage: boolean
  /** It is counted as its text is, and charged as sound. */
  readonly isAudio?: boolean
  /** Everything up to here is to be cached for so long; undefined where no such mark stands. */
  readonly cachedFor: '5m' | '1h' | undefined
}

export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN)
}

export function bytesOf(...texts: readonly string[]): number {
  let bytes = 0
  for (const text of texts) bytes += Buffer.byteLength(text)
  return bytes
}

/** The output of an answer that consists of these: contents, reasoning, names of called tools and their arguments. */
export function outputTokens(...texts: readonly string[]): number {
  return tokensOfBytes(bytesOf(...texts))
}

/** The input of a request that holds these texts and so many images. */
export function inputTokens(texts: readonly string[], images = 0): number {
  let bytes = 0
  for (const text of texts) bytes += Buffer.byteLength(text)
  return tokensOfBytes(bytes) + images * IMAGE_TOKENS
}

export function segmentTokens(segments: readonly Segment[]): number {
  const count = new SegmentCount()
  for (const segment of segments) count.add(segment)
  return count.tokens()
}

/** What of it is sound. */
export function audioTokens(segments: readonly Segment[]): number {
  let bytes = 0
  for (const { text, isAudio } of segments) if (isAudio) bytes += Buffer.byteLength(text)
  return Math.floor(bytes / BYTES_PER_TOKEN)
}

/** Counts segments one by one, for the tokens of every prefix. */
export class SegmentCount {
  #bytes = 0
  #images = 0

  add({ text, isImage }: Segment): void {
    if (isImage) this.#images += 1
    else this.#bytes += Buffer.byteLength(text)
  }

  tokens(): number {
    return tokensOfBytes(this.#bytes) + this.#images * IMAGE_TOKENS
  }
}
