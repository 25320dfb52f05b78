/** The text that a model wrote, where it does not stand in a member that is text by itself. */
import { isMembers } from './members.ts'
import type { Frame } from './sse.ts'

/**
 * So much of the unread text of an answer is not counted: an honest upstream may write a few words in members of its own.
 * Beyond that, all of it is.
 */
export const UNREAD_ALLOWANCE = 256

/** Members of answers that nobody generates word by word, or that are no text: names, signatures, ratings and sources. */
const NOT_GENERATED: ReadonlySet<string> = new Set([
  ...['id', 'object', 'model', 'role', 'type', 'event', 'provider', 'usage', 'logprobs', 'obfuscation', 'annotations'],
  ...['system_fingerprint', 'service_tier', 'finish_reason', 'native_finish_reason', 'x_groq', 'search_results'],
  ...['content_filter_results', 'prompt_filter_results', 'content_filter_offsets', 'content_filter_result'],
  ...['stop_reason', 'stop_sequence', 'stop_details', 'container', 'context_management', 'citation', 'citations'],
  ...['signature', 'encrypted_content', 'thoughtSignature', 'thought_signature', 'inlineData', 'inline_data'],
  ...['responseId', 'modelVersion', 'createTime', 'finishReason', 'finishMessage', 'safetyRatings', 'promptFeedback'],
  ...['usageMetadata', 'groundingMetadata', 'citationMetadata', 'urlContextMetadata', 'logprobsResult'],
  ...['jsonPath', 'nullValue', 'item_id', 'call_id', 'status'],
])
/** Reasoning that only its vendor can read. */
const ENCRYPTED: ReadonlySet<unknown> = new Set(['redacted_thinking', 'reasoning.encrypted'])
const DEPTH_MOST = 32
/** Lines of an event that are no data: comments, and the fields that its format has. */
const FIELD_LINES = /^(?::|event\b|id\b|retry\b).*$/gm

/** What is nested too deeply to be written is too strange to be counted. */
export function jsonText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return ''
  try {
    return JSON.stringify(value)
  } catch {
    return ''
  }
}

/** A value that should be text. */
export function wordsIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** What may be text in an answer, or a part of one, in which its protocol's reader found none: every other string. */
export function unreadText(value: unknown, depth = 0): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null || depth > DEPTH_MOST) return ''
  let text = ''
  if (Array.isArray(value)) for (const item of value) text += unreadText(item, depth + 1)
  else if (isMembers(value) && !ENCRYPTED.has(value.type))
    for (const [name, member] of Object.entries(value))
      if (!NOT_GENERATED.has(name)) text += unreadText(member, depth + 1)
  return text
}

/** That of a frame, all of it where it is no JSON. */
export function unreadTextOf({ bytes, data }: Frame, json: unknown): string {
  if (json !== undefined) return unreadText(json)
  return data ?? bytes.toString().replaceAll(FIELD_LINES, '').trim()
}
