import { REPLY_MOST_BYTES } from '../kernel/memory-budget.ts'
import { OPENAI_BETAS, unknownBetas } from './betas.ts'
import { bytesOfStructure, HOSTED_TOOL_TOKENS, inputOf, type Prompt } from './bound.ts'
import {
  emptyPrompt,
  type Gathered,
  gatherBeside,
  gatherContent,
  gatherMessage,
  gatherOther,
  gatherRest,
  kindOfPicture,
  type MemberPlaces,
  type PartForms,
} from './gather.ts'
import {
  callsIn,
  isGiven,
  isMembers,
  isStreamed,
  type Members,
  modelOf,
  outputCapOf,
  outputLimitOf,
  readMembers,
  refusal,
  tierIn,
} from './members.ts'
import { RESPONSES } from './openai-responses-members.ts'
import { OUTPUT_LIMITS } from './output-limits.ts'
import type { ModelAsk, ModelLimits, ModelRequest } from './protocol.ts'
import { STORED } from './reasons.ts'
import { PLAIN_PROFILE } from './route-profile.ts'
import { spliceJson, withOnlyLimit } from './splice-json.ts'
import { itemsOf } from './usage.ts'
import { MOST_HELD_BYTES } from './withholding-reader.ts'

export { modelOf }

const PLACES: MemberPlaces = {
  outside: ['model', 'input', 'instructions', 'metadata', 'client_metadata'],
  structures: ['tools', 'text'],
}
const PARTS: PartForms = {
  texts: new Map([
    ['input_text', 'text'],
    ['output_text', 'text'],
    ['refusal', 'refusal'],
    ['summary_text', 'text'],
    ['reasoning_text', 'text'],
    // Nobody here can read it. A token of what it hides is at least a byte of it, so that its bytes bound it as those of a text do.
    ['encrypted_content', 'encrypted_content'],
  ]),
  kindOf(type, part) {
    if (type === 'input_image') return kindOfPicture(part)
    return type === 'input_file' ? 'file' : undefined
  },
}
/** What a tool has returned. */
const OUTPUTS: ReadonlySet<unknown> = new Set(['function_call_output', 'custom_tool_call_output'])
/** What an upstream writes into the prompt in a form of its own. */
const STRUCTURED: ReadonlySet<unknown> = new Set([
  ...['function_call', 'custom_tool_call', 'compaction', 'additional_tools', 'configuration_update'],
])

/**
 * What a request for a response asks for. An upstream keeps nothing of it: it is told so where the caller does not say it, since
 * by this protocol it would.
 */
export function ask({ body, rawBody, headers }: ModelRequest, limits: ModelLimits): ModelAsk {
  const { members, unknown, needs } = readMembers(body, RESPONSES, limits.sold)
  const model = modelOf(body)
  const calls = toolCallsOf(members, limits)
  const prompt = promptOf(members, calls, limits)
  const given = outputLimitOf(members, 'max_output_tokens', limits)
  const outputLimit = given ?? outputCapOf(limits)
  const isStream = isStreamed(members)
  if (calls !== undefined) requireSmallFrames(members, isStream)
  return {
    ...inputOf(prompt, limits),
    ...picturesOf(calls, isStream),
    ...(calls !== undefined && { toolCalls: calls.most }),
    needs,
    tier: tierIn(members.service_tier),
    isStream,
    wantsUsage: true,
    choices: 1,
    repeatedBytes: repeatedBytesOf(members, isStream),
    outputLimit,
    isDefaultLimit: given === undefined,
    unknownMembers: [...unknown, ...unknownBetas(headers, OPENAI_BETAS)],
    bodyFor(upstreamModel, { outputLimit: name } = PLAIN_PROFILE) {
      const set: Record<string, string> = {}
      if (upstreamModel !== model) set.model = JSON.stringify(upstreamModel)
      const isAsGiven = given !== undefined && outputLimit !== limits.outputAtMost
      if (!isAsGiven && name === null) set.max_output_tokens = String(outputLimit)
      if (members.store !== false) set.store = 'false'
      if (calls !== undefined && !isGiven(members.max_tool_calls)) set.max_tool_calls = String(calls.most)
      const sent = Object.keys(set).length === 0 ? rawBody : spliceJson(rawBody, set)
      if (name === null) return sent
      return withOnlyLimit(sent, members, { name, among: OUTPUT_LIMITS.openai_responses, limit: outputLimit })
    },
  }
}

type ToolCalls = { readonly most: number; readonly tools: number; readonly hasPictures: boolean }

/** How often tools that the upstream runs may be called, all together; undefined where there are none. */
function toolCallsOf(members: Members, { sold }: ModelLimits): ToolCalls | undefined {
  const kinds = hostedIn(members.tools)
  for (const item of itemsOf(members.input))
    if (isMembers(item) && item.type === 'additional_tools') kinds.push(...hostedIn(item.tools))
  if (kinds.length === 0) return undefined
  const most = callsIn(members.max_tool_calls ?? sold?.toolCalls, 'max_tool_calls')
  return { most, tools: kinds.length, hasPictures: kinds.includes('image_generation') }
}

const HOSTED_TYPE = /^(web_search|file_search|code_interpreter|image_generation)/

function hostedIn(tools: unknown): string[] {
  const kinds: string[] = []
  for (const tool of itemsOf(tools)) {
    if (!isMembers(tool)) continue
    const [kind] = HOSTED_TYPE.exec(String(tool.type)) ?? []
    if (kind !== undefined) kinds.push(kind)
    kinds.push(...hostedIn(tool.tools))
  }
  return kinds
}

/** A large picture in base64. */
const PICTURE_BYTES = 8 * 1_048_576
/** So many have room in the largest reply that is read, and what else it has beside them. */
const PICTURES_MOST = REPLY_MOST_BYTES / PICTURE_BYTES - 1

/** Pictures are larger than the largest frame of a stream. */
function picturesOf(calls: ToolCalls | undefined, isStream: boolean): { replyBytes?: number } {
  if (calls?.hasPictures !== true) return {}
  if (isStream) throw refusal('"tools" must not have image_generation in a stream. Ask for images without "stream".')
  if (calls.most > PICTURES_MOST)
    throw refusal(
      `"max_tool_calls" must be at most ${PICTURES_MOST} with image_generation, whose images all come in one answer. Lower it.`,
    )
  return { replyBytes: calls.most * PICTURE_BYTES }
}

/** What tools have found is as large as they like, and comes in the frame that has the usage. */
const FOUND = /\.(results|outputs)$/

function requireSmallFrames({ include }: Members, isStream: boolean): void {
  const [found] = itemsOf(include).filter((one) => FOUND.test(String(one)))
  if (isStream && found !== undefined)
    throw refusal(
      `"include" must not have ${JSON.stringify(found)} in a stream: the last event could be too large. Leave it out, or ask without "stream".`,
    )
}

/** Half of the largest frame that is read; the other half is for the answer. */
const REPEATED_MOST_BYTES = MOST_HELD_BYTES / 2

/**
 * Every answer repeats the request, but for the input; a stream does so in its first event and in its last one. One that is too large
 * to be read would have no usage, and its upstream's work nobody who pays for it.
 */
function repeatedBytesOf({ input: _, ...repeated }: Members, isStream: boolean): number {
  const bytes = bytesOfStructure(repeated)
  if (!isStream || bytes <= REPEATED_MOST_BYTES) return bytes
  throw refusal(
    `The members beside "input" are too large for a stream: the limit is ${REPEATED_MOST_BYTES} bytes, with 6 for each non-ASCII character. Send long texts in "input".`,
  )
}

function promptOf(members: Members, calls: ToolCalls | undefined, limits: ModelLimits): Prompt {
  const { input, instructions } = members
  const gathered = emptyPrompt(limits)
  if (typeof instructions === 'string') gathered.texts.push(instructions)
  else if (isGiven(instructions)) throw refusal('"instructions" must be a text.')
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : listOfItems(input)
  let tools = toolsIn(members.tools)
  for (const [at, item] of items.entries()) {
    gatherItem(item, at, gathered)
    if (isMembers(item) && item.type === 'additional_tools') tools += toolsIn(item.tools)
  }
  const others = gatherBeside(members, PLACES, gathered)
  const declaredTokens = (calls?.tools ?? 0) * HOSTED_TOOL_TOKENS
  // Further calls than those are not made: each round but the last has one at least.
  const hosted = calls && { hosted: { calls: calls.most, rounds: calls.most } }
  // Instructions are a message too.
  return { ...gathered, others, messages: items.length + 1, tools, declaredTokens, ...hosted }
}

function listOfItems(input: unknown): readonly unknown[] {
  if (!Array.isArray(input) || input.length === 0)
    throw refusal('"input" must be a text or an array with at least one item.')
  return input
}

/** With those that a namespace holds. */
function toolsIn(tools: unknown): number {
  let count = 0
  for (const tool of itemsOf(tools)) count += 1 + (isMembers(tool) ? toolsIn(tool.tools) : 0)
  return count
}

function gatherItem(item: unknown, at: number, gathered: Gathered): void {
  if (!isMembers(item)) {
    gathered.structures.push(item)
    return
  }
  const { type, ...rest } = item
  if (!isGiven(type) || type === 'message') {
    if (!isGiven(rest.role)) throw refusal(`"input[${at}]" has no role, so it refers to a stored item: ${STORED}`)
    gatherMessage(rest, PARTS, gathered)
  } else if (OUTPUTS.has(type)) {
    const { output, ...others } = rest
    gatherContent(output, PARTS, gathered)
    gatherRest(others, gathered)
  } else if (type === 'agent_message') {
    const { content, ...others } = rest
    gatherContent(content, PARTS, gathered)
    gatherRest(others, gathered)
  } else if (type === 'reasoning') {
    const { summary, content, ...others } = rest
    gatherContent(summary, PARTS, gathered)
    gatherContent(content, PARTS, gathered)
    gatherRest(others, gathered)
  } else if (STRUCTURED.has(type)) gathered.structures.push(rest)
  else gatherOther(rest, undefined, gathered)
}
