import { memberOf } from '../catalogue/price.ts'
import { wordsIn } from './generated-text.ts'
import { isMembers } from './members.ts'
import { createChatEnding } from './openai-end.ts'
import { type Counted, type CountPlaces, classesOf, countsIn, hasCompletion, NOTHING } from './openai-usage.ts'
import type { ModelAsk, ReplyForm, Reported, StreamReader } from './protocol.ts'
import { PLAIN_PROFILE } from './route-profile.ts'
import type { Frame } from './sse.ts'
import { itemsOf, soundTokensOf, tierOf, withoutNullUsage } from './usage.ts'
import { createWithholdingReader, type Reading } from './withholding-reader.ts'

const PLACES: CountPlaces = {
  prompt: ['prompt_tokens'],
  completion: ['completion_tokens'],
  cached: ['prompt_tokens_details', 'cached_tokens'],
  written: ['prompt_tokens_details', 'cache_write_tokens'],
  reasoning: ['completion_tokens_details', 'reasoning_tokens'],
  total: ['total_tokens'],
  audioIn: ['prompt_tokens_details', 'audio_tokens'],
  imageIn: ['prompt_tokens_details', 'image_tokens'],
  audioOut: ['completion_tokens_details', 'audio_tokens'],
  imageOut: ['completion_tokens_details', 'image_tokens'],
}
const NO_BYTES = Buffer.alloc(0)

export function usageOf(json: unknown, profile: Counted = PLAIN_PROFILE): Reported {
  return {
    ...classesOf(countsIn(memberOf(json, 'usage'), PLACES, NOTHING), profile),
    ...tierOf(memberOf(json, 'service_tier')),
  }
}

export function formOf(json: unknown): ReplyForm {
  if (memberOf(json, 'error')) return 'nothing'
  return Array.isArray(memberOf(json, 'choices')) ? 'answer' : 'unreadable'
}

/** Sound, which nobody can count. */
export function hasMedia(json: unknown): boolean {
  return itemsOf(memberOf(json, 'choices')).some((choice) => isMembers(memberOf(choice, 'message', 'audio')))
}

export function textOf(json: unknown): string {
  let text = ''
  for (const choice of itemsOf(memberOf(json, 'choices'))) text += generatedIn(memberOf(choice, 'message'))
  return text
}

/**
 * The answer ends with the chunk that has the last stop reason that is still missing, so that every choice asked for has
 * one; then come the usage and [DONE]. Upstreams that give fewer choices, or no reasons, are taken at these last two; but a
 * usage that comes before anything was generated is no end.
 * The cost is told in the usage, or to a caller who gets none in the chunk with that stop reason.
 */
export function createReader(
  { choices, wantsUsage, needs }: Pick<ModelAsk, 'choices' | 'wantsUsage' | 'needs'>,
  profile: Counted = PLAIN_PROFILE,
): StreamReader {
  const stopped = new Set<unknown>()
  const isSpoken = needs?.has('output_audio') === true
  let hasText = false
  let soundChars = 0
  let counts = NOTHING
  let tier: Pick<Reported, 'tier'> = {}

  function read(frame: Frame, json: unknown): Reading {
    // The callers' libraries look no further than this either.
    if (frame.data?.startsWith('[DONE]')) return { isStop: true, isEnd: true }
    if (!isMembers(json)) return {}
    const usage = memberOf(json, 'usage')
    counts = countsIn(usage, PLACES, counts)
    tier = { ...tier, ...tierOf(memberOf(json, 'service_tier')) }
    const parts = itemsOf(memberOf(json, 'choices'))
    // Some upstreams write an empty reason where they mean none.
    let hasReason = false
    for (const choice of parts) {
      if (!memberOf(choice, 'finish_reason')) continue
      hasReason = true
      stopped.add(choiceIndex(choice))
    }
    const text = textIn(parts)
    const sound = isSpoken ? soundIn(parts) : 0
    soundChars += sound
    hasText ||= text !== '' || sound > 0
    const hasBegun = hasText || stopped.size > 0
    const isError = Boolean(memberOf(json, 'error'))
    return {
      text,
      isError,
      isStop: !isError && (stopped.size >= choices || (hasBegun && isReportAlone(json, usage))),
      // Sound is counted by its length, and is no text that nobody has read.
      ...(sound > 0 && { unread: null }),
      isReport: hasCompletion(usage, PLACES),
      isPlain: !hasReason && !isError && !isMembers(usage) && sound === 0,
      takesCost: wantsUsage && isMembers(usage) ? 'in_usage' : hasReason ? 'beside' : undefined,
      ...(!wantsUsage && usage !== undefined && { bytes: withoutUsage(frame, json, usage) }),
    }
  }

  return createWithholdingReader({
    read,
    reported: () => ({ ...classesOf(counts, profile), ...soundTokensOf(soundChars), ...tier }),
    ending: createChatEnding(choices, wantsUsage),
  })
}

/** The report at the end of a stream comes by itself, and so does one that some upstreams write at its beginning. */
function isReportAlone(chunk: unknown, usage: unknown): boolean {
  const choices = memberOf(chunk, 'choices')
  return isMembers(usage) && Array.isArray(choices) && choices.length === 0
}

/** The usage is always asked for upstream. A caller who has not asked gets a stream as if nobody had. */
function withoutUsage(frame: Frame, chunk: unknown, usage: unknown): Buffer {
  if (usage === null) return withoutNullUsage(frame)
  return isReportAlone(chunk, usage) ? NO_BYTES : frame.bytes
}

/** A single choice may come without its index. */
function choiceIndex(choice: unknown): unknown {
  return memberOf(choice, 'index') ?? 0
}

function textIn(choices: readonly unknown[]): string {
  let text = ''
  for (const choice of choices) text += generatedIn(memberOf(choice, 'delta'))
  return text
}

/** How long the sound is that they have, in characters of base64. */
function soundIn(choices: readonly unknown[]): number {
  let chars = 0
  for (const choice of choices) chars += wordsIn(memberOf(choice, 'delta', 'audio', 'data')).length
  return chars
}

/** What the model wrote in a message, or in a part of one. */
function generatedIn(message: unknown): string {
  if (!isMembers(message)) return ''
  let text = contentIn(memberOf(message, 'content')) + wordsIn(memberOf(message, 'refusal')) + reasoningIn(message)
  text += wordsIn(memberOf(message, 'audio', 'transcript'))
  for (const call of itemsOf(memberOf(message, 'tool_calls')))
    text += callIn(memberOf(call, 'function')) + callIn(memberOf(call, 'custom'))
  return text + callIn(memberOf(message, 'function_call'))
}

/** Upstreams that write it under several names write the same under each. */
function reasoningIn(message: unknown): string {
  const words = wordsIn(memberOf(message, 'reasoning_content')) || wordsIn(memberOf(message, 'reasoning'))
  if (words !== '') return words
  let text = ''
  for (const detail of itemsOf(memberOf(message, 'reasoning_details')))
    text += wordsIn(memberOf(detail, 'text')) + wordsIn(memberOf(detail, 'summary'))
  return text
}

/** Some upstreams write it in parts, those of reasoning in parts of their own. */
function contentIn(content: unknown): string {
  if (!Array.isArray(content)) return wordsIn(content)
  let text = ''
  for (const part of content) {
    text += wordsIn(memberOf(part, 'text'))
    for (const thought of itemsOf(memberOf(part, 'thinking'))) text += wordsIn(memberOf(thought, 'text'))
  }
  return text
}

/** Of a function by its arguments, of a custom tool by its input. */
function callIn(call: unknown): string {
  return wordsIn(memberOf(call, 'name')) + wordsIn(memberOf(call, 'arguments')) + wordsIn(memberOf(call, 'input'))
}
