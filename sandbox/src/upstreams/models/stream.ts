import type { JsonObject } from '../../json.ts'

/** One event of a stream as it goes over the wire. */
export type Frame = {
  readonly text: string
  /** `end` is what says that the answer is whole. */
  readonly kind: 'delta' | 'end' | 'other'
  /** Bytes of generated text that it carries. */
  readonly bytes: number
  /** Figures that it reports. */
  readonly usage?: JsonObject
}

/** An answer that comes frame by frame. */
export type Stream = {
  readonly frames: () => Iterable<Frame>
  /** Of generated text in all its deltas. */
  readonly bytes: number
  /** Of the whole answer, with what nobody sees. */
  readonly tokens: number
  /** Between two deltas. */
  readonly everyMs: number
}
