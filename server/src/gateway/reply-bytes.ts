import { REPLY_MOST_BYTES } from '../kernel/memory-budget.ts'
import type { ModelAsk } from '../protocols/protocol.ts'

/** What a stream holds as a rule: a reading of its upstream's connection, a write to its caller's, and the text to be counted. */
export const STREAM_BYTES = 65_536
/** What one reading of an upstream's connection holds, and most replies of data have. A larger one takes more as it comes. */
export const DATA_REPLY_BYTES = 65_536
/** What a token of text takes in JSON: some four bytes, or some characters each escaped in six. */
const BYTES_OF_TOKEN = 16
/** Names, ids, usage, and what else stands around a text. */
const OVERHEAD_BYTES = 32_768

/** How many bytes a model's reply has at the most by what is asked for, reserved before the call begins. */
export function replyBytesOf({ isStream, replyBytes }: ModelAsk, outputMost: number): number {
  if (isStream) return STREAM_BYTES
  return Math.min(REPLY_MOST_BYTES, OVERHEAD_BYTES + (replyBytes ?? outputMost * BYTES_OF_TOKEN))
}
