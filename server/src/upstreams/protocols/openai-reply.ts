import { countIn, memberOf } from '../../catalogue/price.ts'
import { isMembers } from './members.ts'
import type { ModelAsk, Reported, StreamReader } from './protocol.ts'
import type { Frame } from './sse.ts'
import { itemsOf, reportedOf, withoutNullUsage } from './usage.ts'
import { createWithholdingReader, type Reading } from './withholding-reader.ts'

/** As the protocol counts: what was read from a cache and written to one is part of the prompt. */
type Counts = {
  readonly prompt: number | undefined
  readonly completion: number | undefined
  readonly cached: number | undefined
  readonly written: number | undefined
}

const NOTHING: Counts = { prompt: undefined, completion: undefined, cached: undefined, written: undefined }
const NO_BYTES = Buffer.alloc(0)

export function usageOf(json: unknown): Reported {
  return classesOf(countsIn(memberOf(json, 'usage'), NOTHING))
}

export function textOf(json: unknown): string {
  let text = ''
  for (const choice of itemsOf(memberOf(json, 'choices'))) text += generatedIn(memberOf(choice, 'message'))
  return text
}

/**
 * The answer ends with the chunk that has the last stop reason that is still missing, so that every choice asked for has
 * one; then come the usage and [DONE]. Upstreams that give fewer choices, or no reasons, are taken at these last two.
 */
export function createReader({ choices, wantsUsage }: Pick<ModelAsk, 'choices' | 'wantsUsage'>): StreamReader {
  const stopped = new Set<unknown>()
  let counts = NOTHING

  function read(frame: Frame, json: unknown): Reading {
    // The callers' libraries look no further than this either.
    if (frame.data?.startsWith('[DONE]')) return { isStop: true, isEnd: true }
    if (!isMembers(json)) return {}
    const usage = memberOf(json, 'usage')
    counts = countsIn(usage, counts)
    const parts = itemsOf(memberOf(json, 'choices'))
    // Some upstreams write an empty reason where they mean none.
    let hasReason = false
    for (const choice of parts) {
      if (!memberOf(choice, 'finish_reason')) continue
      hasReason = true
      stopped.add(choiceIndex(choice))
    }
    const isError = Boolean(memberOf(json, 'error'))
    return {
      text: textIn(parts),
      isError,
      isStop: !isError && (stopped.size >= choices || isLastReport(json, usage)),
      isPlain: !hasReason && !isError && !isMembers(usage),
      takesCost: wantsUsage && isMembers(usage),
      ...(!wantsUsage && usage !== undefined && { bytes: withoutUsage(frame, json, usage) }),
    }
  }

  return createWithholdingReader({ read, reported: () => classesOf(counts) })
}

/** The report at the end of a stream comes by itself. */
function isLastReport(chunk: unknown, usage: unknown): boolean {
  const choices = memberOf(chunk, 'choices')
  return isMembers(usage) && Array.isArray(choices) && choices.length === 0
}

/** The usage is always asked for upstream. A caller who has not asked gets a stream as if nobody had. */
function withoutUsage(frame: Frame, chunk: unknown, usage: unknown): Buffer {
  if (usage === null) return withoutNullUsage(frame)
  return isLastReport(chunk, usage) ? NO_BYTES : frame.bytes
}

/** What a later report does not say stays as an earlier one has said it. */
function countsIn(usage: unknown, earlier: Counts): Counts {
  if (!isMembers(usage)) return earlier
  return {
    prompt: countIn(memberOf(usage, 'prompt_tokens')) ?? earlier.prompt,
    completion: countIn(memberOf(usage, 'completion_tokens')) ?? earlier.completion,
    cached: countIn(memberOf(usage, 'prompt_tokens_details', 'cached_tokens')) ?? earlier.cached,
    written: countIn(memberOf(usage, 'prompt_tokens_details', 'cache_write_tokens')) ?? earlier.written,
  }
}

/** Parts say nothing without their whole, and are never more than it. */
function classesOf({ prompt, completion, cached, written }: Counts): Reported {
  if (prompt === undefined) return completion === undefined ? {} : { output: completion }
  const cacheRead = Math.min(cached ?? 0, prompt)
  const cacheWrite = Math.min(written ?? 0, prompt - cacheRead)
  return reportedOf({
    input: prompt - cacheRead - cacheWrite,
    output: completion,
    cacheRead: cached === undefined ? undefined : cacheRead,
    cacheWrite: written === undefined ? undefined : cacheWrite,
  })
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

/** What the model wrote in a message, or in a part of one. */
function generatedIn(message: unknown): string {
  if (!isMembers(message)) return ''
  const reasoning = memberOf(message, 'reasoning_content') ?? memberOf(message, 'reasoning')
  let text = wordsIn(memberOf(message, 'content')) + wordsIn(memberOf(message, 'refusal')) + wordsIn(reasoning)
  for (const call of itemsOf(memberOf(message, 'tool_calls'))) text += callIn(memberOf(call, 'function'))
  return text + callIn(memberOf(message, 'function_call'))
}

function callIn(call: unknown): string {
  return wordsIn(memberOf(call, 'name')) + wordsIn(memberOf(call, 'arguments'))
}

function wordsIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
