import { REPLY_MOST_BYTES } from '../kernel/memory-budget.ts'
import { MOST_TEXT_BYTES } from '../protocols/kept-text.ts'
import type { ModelAsk } from '../protocols/protocol.ts'
import type { Plan } from './plan.ts'

/** What a stream holds as a rule: a reading of its upstream's connection, a write to its caller's, and the text to be counted. */
export const STREAM_BYTES = 65_536
/** What one reading of an upstream's connection holds, and most replies of data have. A larger one takes more as it comes. */
export const DATA_REPLY_BYTES = 65_536
/** What a token of text takes in JSON: some four bytes, or some characters each escaped in six. */
const BYTES_OF_TOKEN = 16
/** Names, ids, usage, and what else stands around a text. */
const OVERHEAD_BYTES = 32_768

/**
 * How many bytes a model's reply has at the most by what is asked for. A stream keeps its text, as it comes; one that repeats its request
 * does so in a frame, and at its end once more with all of its text.
 */
export function replyBytesOf(
  { isStream, replyBytes, repeatedBytes }: Pick<ModelAsk, 'isStream' | 'replyBytes' | 'repeatedBytes'>,
  outputMost: number,
): Pick<Plan, 'replyBytes' | 'replyMostBytes'> {
  const textBytes = outputMost * BYTES_OF_TOKEN
  if (isStream) {
    const keptBytes = Math.min(MOST_TEXT_BYTES, textBytes)
    const bytes = STREAM_BYTES + (repeatedBytes ?? 0)
    return { replyBytes: bytes, replyMostBytes: bytes + (repeatedBytes === undefined ? 1 : 2) * keptBytes }
  }
  const bytes = Math.min(REPLY_MOST_BYTES, OVERHEAD_BYTES + (replyBytes ?? textBytes) + (repeatedBytes ?? 0))
  return { replyBytes: bytes, replyMostBytes: bytes }
}
