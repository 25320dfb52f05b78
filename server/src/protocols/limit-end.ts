import type { LimitEnd } from './protocol.ts'

/** Our member beside a protocol's own reason: that says only that a limit was met. */
export const ENDED_BY = 'ended_by'

/** What has passed of a stream, counted from its start. */
export type Passage = {
  /** Bytes of text. */
  readonly textBytes: number
  readonly frames: number
}

/** So much is kept of what has passed, to be told again at the end. */
export const MOST_KEPT_BYTES = 262_144

/** Ends an answer as its protocol ends at an output limit: it knows what is open of what has passed. */
export type LimitEnding = {
  /** Told of each frame that passes, but of plain ones. How much passed before it, and how many bytes it has. */
  readonly passed: (json: unknown, before: Passage, bytes: number) => void
  /** How much of the process's memory it takes. */
  readonly keptBytes?: () => number
  /** The last frames. `text` gives what was generated, from one byte to another. */
  readonly frames: (end: LimitEnd, passage: Passage, text: (from: number, to: number) => string) => string
}

/** An event without a name, as two of the protocols have them. */
export function dataFrame(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`
}

/** An event whose name is its type. */
export function typedFrame(data: Readonly<Record<string, unknown>> & { readonly type: string }): string {
  return `event: ${data.type}\n${dataFrame(data)}`
}
