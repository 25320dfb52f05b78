import { memberOf } from '../catalogue/price.ts'
import { isServerTool, SERVER_TOOLS, type ServerTool } from '../catalogue/price-classes.ts'
import { wordsIn } from './generated-text.ts'
import { isMembers } from './members.ts'
import { createResponseEnding } from './openai-responses-end.ts'
import { RESPONSES } from './openai-responses-members.ts'
import { type Counted, type CountPlaces, classesOf, countsIn, hasCompletion, NOTHING } from './openai-usage.ts'
import type { ModelAsk, ReplyForm, Reported, StreamReader } from './protocol.ts'
import { PLAIN_PROFILE } from './route-profile.ts'
import type { Frame } from './sse.ts'
import { callsOf, itemsOf, tierOf } from './usage.ts'
import { createWithholdingReader, MOST_HELD_BYTES, type Reading } from './withholding-reader.ts'

const PLACES: CountPlaces = {
  prompt: ['input_tokens'],
  completion: ['output_tokens'],
  cached: ['input_tokens_details', 'cached_tokens'],
  written: ['input_tokens_details', 'cache_write_tokens'],
  reasoning: ['output_tokens_details', 'reasoning_tokens'],
  total: ['total_tokens'],
  audioIn: ['input_tokens_details', 'audio_tokens'],
  imageIn: ['input_tokens_details', 'image_tokens'],
  audioOut: ['output_tokens_details', 'audio_tokens'],
  imageOut: ['output_tokens_details', 'image_tokens'],
}

export function usageOf(json: unknown, profile: Counted = PLAIN_PROFILE): Reported {
  return {
    ...classesOf(countsIn(memberOf(json, 'usage'), PLACES, NOTHING), profile),
    ...callsOf(callsIn(itemsOf(memberOf(json, 'output')))),
    ...tierOf(memberOf(json, 'service_tier')),
  }
}

type CallCounts = Partial<Record<ServerTool, number>>

/** Calls of tools that the upstream ran. */
function callsIn(items: readonly unknown[]): CallCounts {
  const calls: CallCounts = {}
  for (const item of items) countCall(item, calls)
  return calls
}

/** Of a search, what only opens a page is none. */
function countCall(item: unknown, calls: CallCounts): void {
  const tool = toolOf(item)
  const action = memberOf(item, 'action', 'type')
  if (tool === undefined || (tool === 'web_search' && action !== undefined && action !== 'search')) return
  calls[tool] = (calls[tool] ?? 0) + 1
}

/** The tool of the upstream's own that an item is a call of. */
function toolOf(item: unknown): ServerTool | undefined {
  const [, tool = ''] = /^(\w+)_call$/.exec(wordsIn(memberOf(item, 'type'))) ?? []
  return isServerTool(tool) ? tool : undefined
}

/** Of each tool as many as one of the two has. */
function moreOf(one: CallCounts, other: CallCounts): CallCounts {
  const most = { ...one }
  for (const tool of SERVER_TOOLS) {
    const count = other[tool]
    if (count !== undefined) most[tool] = Math.max(most[tool] ?? 0, count)
  }
  return most
}

export function formOf(json: unknown): ReplyForm {
  if (memberOf(json, 'error')) return 'nothing'
  return Array.isArray(memberOf(json, 'output')) ? 'answer' : 'unreadable'
}

export function textOf(json: unknown): string {
  let text = ''
  for (const item of itemsOf(memberOf(json, 'output'))) text += generatedIn(item)
  return text
}

/** A response repeats most of its request, instructions and tools too: nobody has generated that. */
export function restOf(json: unknown): unknown {
  if (!isMembers(json)) return json
  return Object.fromEntries(Object.entries(json).filter(([name]) => !Object.hasOwn(RESPONSES.members, name)))
}

const words = (name: string) => (event: unknown) => wordsIn(memberOf(event, name))
const part = (event: unknown) => partIn(memberOf(event, 'part'))
const response = (event: unknown) => textOf(memberOf(event, 'response'))
/** The events that tell again what was written, and where. */
const TOLD_AGAIN: ReadonlyMap<unknown, (event: unknown) => string> = new Map([
  ['response.output_text.done', words('text')],
  ['response.refusal.done', words('refusal')],
  ['response.reasoning_text.done', words('text')],
  ['response.reasoning_summary_text.done', words('text')],
  ['response.reasoning_summary_part.done', part],
  ['response.function_call_arguments.done', words('arguments')],
  ['response.custom_tool_call_input.done', words('input')],
  ['response.code_interpreter_call_code.done', words('code')],
  ['response.content_part.done', part],
  ['response.output_item.done', (event: unknown) => generatedIn(memberOf(event, 'item'))],
  ['response.completed', response],
  ['response.incomplete', response],
])
/** Those with which the answer ends, and the stream. */
const ENDS: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete'])
/** Those that have nothing but a response that was not yet written. */
const BEGINNINGS: ReadonlySet<unknown> = new Set(['response.created', 'response.in_progress', 'response.queued'])
const ERRORS: ReadonlySet<unknown> = new Set(['error', 'response.failed'])
const DELTA = '.delta'
const ITEM_DONE = 'response.output_item.done'

/**
 * The answer and the stream end with response.completed or response.incomplete, which has the usage; the cost is told there.
 *
 * What is written comes in deltas, and is told again as a text, a part, an item and in the last response. It is counted once. Of
 * each kind of event all that was told so far can't be more than what was counted, unless the upstream writes something there alone.
 */
export function createReader(
  { toolCalls }: Pick<ModelAsk, 'toolCalls'> = {},
  profile: Counted = PLAIN_PROFILE,
): StreamReader {
  /** What a tool has found that the upstream ran, where such a one was asked for: nobody has generated that. */
  const isFound = (item: unknown) => toolCalls !== undefined && toolOf(item) !== undefined
  const toldBytes = new Map<unknown, number>()
  let counts = NOTHING
  let calls: CallCounts = {}
  /** Those of items that came so far. */
  const ran: CallCounts = {}
  let tier: Pick<Reported, 'tier'> = {}

  /** What of a text was not counted before: its end, as a rule nothing. */
  function newIn(kind: unknown, text: string, countedBytes: number): string {
    const bytes = Buffer.byteLength(text)
    const told = (toldBytes.get(kind) ?? 0) + bytes
    toldBytes.set(kind, told)
    if (told <= countedBytes) return ''
    const known = bytes - (told - countedBytes)
    return known <= 0 ? text : Buffer.from(text).toString('utf8', known)
  }

  function read(frame: Frame, json: unknown, countedBytes: number): Reading {
    // Some upstreams write it as in their other protocol. Libraries would not read what we have to say after it.
    if (frame.data?.startsWith('[DONE]')) return { isEnd: true }
    // The name of the event is in its data again, and says nothing of data that can't be read.
    const kind = isMembers(json) ? (memberOf(json, 'type') ?? frame.event) : undefined
    // What a usage says before there is any answer is not what that will use: an upstream may write zeros there.
    const usage = BEGINNINGS.has(kind) ? undefined : memberOf(json, 'response', 'usage')
    counts = countsIn(usage, PLACES, counts)
    if (kind === ITEM_DONE) countCall(memberOf(json, 'item'), ran)
    if (ENDS.has(kind)) calls = callsIn(itemsOf(memberOf(json, 'response', 'output')))
    if (!BEGINNINGS.has(kind)) tier = { ...tier, ...tierOf(memberOf(json, 'response', 'service_tier')) }
    if (ERRORS.has(kind) || frame.event === 'error' || memberOf(json, 'error')) return { isError: true }
    if (typeof kind === 'string' && kind.endsWith(DELTA))
      return {
        text: wordsIn(memberOf(json, 'delta')),
        isReport: hasCompletion(usage, PLACES),
        isPlain: !isMembers(usage),
      }
    if (BEGINNINGS.has(kind)) return { unread: restOf(memberOf(json, 'response')) }
    const toldIn = TOLD_AGAIN.get(kind)
    const item = memberOf(json, 'item')
    if (toldIn === undefined)
      return { text: generatedIn(item) + partIn(memberOf(json, 'part')), ...(isFound(item) && { unread: null }) }
    const told = toldIn(json)
    const text = newIn(kind, told, countedBytes)
    if (!ENDS.has(kind)) return told === '' && !isFound(item) ? {} : { text, unread: null }
    return {
      text,
      // Where nothing was ever read, words may stand elsewhere.
      unread: told === '' && countedBytes === 0 ? restOf(memberOf(json, 'response')) : null,
      isStop: true,
      isEnd: true,
      isReport: hasCompletion(usage, PLACES),
      takesCost: isMembers(usage) ? 'in_usage' : 'beside',
    }
  }

  return createWithholdingReader({
    read,
    reported: () => ({ ...classesOf(counts, profile), ...callsOf(moreOf(calls, ran)), ...tier }),
    usagePath: ['response', 'usage'],
    varying: ['sequence_number', 'obfuscation'],
    // The last one has all of the answer and most of the request, and the usage behind that.
    mostFrameBytes: MOST_HELD_BYTES,
    ending: createResponseEnding(),
  })
}

/** What the model wrote in an item: a message, its reasoning, or the call of a tool. */
function generatedIn(item: unknown): string {
  let text = ''
  for (const name of ['name', 'arguments', 'input', 'code']) text += wordsIn(memberOf(item, name))
  for (const name of ['content', 'summary']) for (const one of itemsOf(memberOf(item, name))) text += partIn(one)
  return text
}

function partIn(one: unknown): string {
  return wordsIn(memberOf(one, 'text')) + wordsIn(memberOf(one, 'refusal'))
}
