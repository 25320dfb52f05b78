import { TOOL_CALLS_MOST } from '../catalogue/price-classes.ts'
import { MESSAGES, undated } from './anthropic-members.ts'
import { ANTHROPIC_BETAS, unknownBetas } from './betas.ts'
import { HOSTED_TOOL_TOKENS, type Hosted, inputOf, type Prompt } from './bound.ts'
import {
  emptyPrompt,
  type Gathered,
  gatherOther,
  gatherRest,
  gatherText,
  isShortRole,
  kindOfPicture,
} from './gather.ts'
import {
  callsIn,
  isGiven,
  isMembers,
  isStreamed,
  listOf,
  type Members,
  messagesOf,
  modelOf,
  outputCapOf,
  outputLimitOf,
  readMembers,
  refusal,
  tierIn,
} from './members.ts'
import type { ModelAsk, ModelLimits, ModelRequest } from './protocol.ts'
import { spliceJson, withModel } from './splice-json.ts'

export { modelOf }

/** Tools whose definition the upstream has, with the tokens that they take at the most. */
const DEFINED_TOOLS: ReadonlyMap<unknown, number> = new Map([
  ['bash', 2000],
  ['text_editor', 2000],
  ['computer', 2000],
  ['memory', 2000],
  ['computer_toolset', 10_000],
  ['web_search', HOSTED_TOOL_TOKENS],
  ['web_fetch', HOSTED_TOOL_TOKENS],
])

const OUTSIDE_PROMPT = ['model', 'messages', 'system', 'metadata']
/** Members that an upstream writes into the prompt. */
const STRUCTURES = ['tools', 'output_config', 'output_format']
/** Where the text of a block stands, by the block's type. */
const TEXT_BLOCKS: ReadonlyMap<unknown, string> = new Map([
  ['text', 'text'],
  ['thinking', 'thinking'],
])
/** Blocks whose members are all written into the prompt. */
const STRUCTURED_BLOCKS = ['tool_use', 'redacted_thinking', 'tool_reference']
const BINARY_SOURCES = ['base64', 'url', 'file']

/** Under another version, an answer may have a form that nobody here can read, and so not meter. */
const VERSIONS = ['2023-06-01', '2026-10-21']

/** What a request for a message asks for. */
export function ask(request: ModelRequest, limits: ModelLimits): ModelAsk {
  const { members, model, input } = read(request, limits)
  const isStream = isStreamed(members)
  const given = outputLimitOf(members, 'max_tokens', limits)
  const outputLimit = given ?? outputCapOf(limits)
  const isLowered = outputLimit === limits.outputAtMost
  if (isLowered) requireRoomToThink(members, outputLimit)
  return {
    ...input,
    isStream,
    outputLimit,
    isDefaultLimit: given === undefined,
    bodyFor(upstreamModel) {
      const set: Record<string, string> = {}
      if (upstreamModel !== model) set.model = JSON.stringify(upstreamModel)
      if (isLowered || given === undefined) set.max_tokens = String(outputLimit)
      return Object.keys(set).length === 0 ? request.rawBody : spliceJson(request.rawBody, set)
    },
  }
}

/** An upstream refuses a limit that leaves nothing beside what the model may think. */
function requireRoomToThink({ thinking }: Members, outputLimit: number): void {
  if (isMembers(thinking) && Number(thinking.budget_tokens ?? 0) >= outputLimit)
    throw refusal(`"thinking" must have fewer tokens than the output limit of ${outputLimit}. Lower it.`)
}

/** What a request to count tokens asks for: the same input, and nothing to be generated. */
export function askToCount(request: ModelRequest, limits: ModelLimits): ModelAsk {
  const { model, input } = read(request, limits)
  return {
    ...input,
    isStream: false,
    outputLimit: 0,
    isDefaultLimit: false,
    bodyFor: (upstreamModel) => withModel(request.rawBody, model, upstreamModel),
  }
}

type Read = {
  readonly members: Members
  readonly model: string
  readonly input: Omit<ModelAsk, 'isStream' | 'outputLimit' | 'isDefaultLimit' | 'bodyFor'>
}

function read({ body, headers }: ModelRequest, limits: ModelLimits): Read {
  const { members, unknown, needs } = readMembers(body, MESSAGES, limits.sold)
  requireKnownVersion(headers)
  const model = modelOf(body)
  const messages = messagesOf(members)
  const unknownMembers = [...unknown, ...unknownBetas(headers, ANTHROPIC_BETAS, limits.sold)]
  const hosted = hostedIn(members, limits)
  const prompt = promptOf(members, messages, limits)
  const input = {
    ...{ choices: 1, wantsUsage: true, unknownMembers, needs, tier: tierIn(members.service_tier) },
    ...(hosted !== undefined && { toolCalls: hosted.calls }),
    ...inputOf(hosted === undefined ? prompt : { ...prompt, hosted }, limits),
  }
  return { members, model, input }
}

const SERVER_TOOLS: readonly unknown[] = ['web_search', 'web_fetch']

/**
 * A call beyond `max_uses` is answered with an error, and the model goes on. What ends that is the upstream's own limit of rounds, after
 * which it pauses the turn.
 */
const ROUNDS_LEAST = 10

/** How often tools that the upstream runs may be called, all together; undefined where there are none. */
function hostedIn({ tools }: Members, { sold }: ModelLimits): Hosted | undefined {
  let calls = 0
  for (const [at, tool] of listOf(tools, 'tools').entries()) {
    if (!isMembers(tool)) continue
    const kind = undated(tool.type)
    if (!SERVER_TOOLS.includes(kind)) continue
    // What the price allows is no bound here: nothing that is sent would say it.
    calls += callsIn(tool.max_uses, `tools[${at}].max_uses`)
    if (calls > TOOL_CALLS_MOST)
      throw refusal(`"max_uses" of all "tools" together must be at most ${TOOL_CALLS_MOST}. Lower them.`)
    if (kind === 'web_fetch' && sold?.toolInput !== undefined)
      requireContentLimit(tool.max_content_tokens, `tools[${at}].max_content_tokens`, sold.toolInput)
  }
  return calls === 0 ? undefined : { calls, rounds: Math.max(calls, ROUNDS_LEAST) }
}

/** What is held for a call is what the price says that one brings; a page may be longer. */
function requireContentLimit(value: unknown, name: string, most: number): void {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most) return
  throw refusal(`"${name}" is required, as a whole number from 1 to ${most}: fetched text counts as input.`)
}

function requireKnownVersion({ 'anthropic-version': version }: ModelRequest['headers']): void {
  if (version !== undefined && !VERSIONS.includes(version))
    throw refusal(`The header anthropic-version must be one of ${VERSIONS.join(', ')}.`)
}

function promptOf(members: Members, messages: readonly unknown[], limits: ModelLimits): Prompt {
  const gathered = emptyPrompt(limits)
  gatherContent(members.system, gathered)
  for (const message of messages) gatherMessage(message, gathered)
  const tools = listOf(members.tools, 'tools')
  let declaredTokens = 0
  for (const tool of tools) declaredTokens += declaredTokensOf(tool)
  const others: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(members)) {
    if (STRUCTURES.includes(name)) gathered.structures.push(value)
    else if (!OUTSIDE_PROMPT.includes(name)) others[name] = value
  }
  return { ...gathered, others, messages: messages.length + 1, tools: tools.length, declaredTokens }
}

function declaredTokensOf(tool: unknown): number {
  return isMembers(tool) ? (DEFINED_TOOLS.get(undated(tool.type)) ?? 0) : 0
}

function gatherMessage(message: unknown, gathered: Gathered): void {
  if (!isMembers(message)) {
    gathered.structures.push(message)
    return
  }
  const { role, content, ...rest } = message
  if (!isShortRole(role)) gathered.structures.push(role)
  gatherContent(content, gathered)
  gatherRest(rest, gathered)
}

function gatherContent(content: unknown, gathered: Gathered): void {
  if (typeof content === 'string') gathered.texts.push(content)
  else if (Array.isArray(content)) for (const block of content) gatherBlock(block, gathered)
  else if (isGiven(content)) gatherBlock(content, gathered)
}

/** A block holds blocks at most as deep as the body is nested, which has a limit. */
function gatherBlock(block: unknown, gathered: Gathered): void {
  if (!isMembers(block)) {
    gathered.structures.push(block)
    return
  }
  const { type, cache_control: _, ...rest } = block
  const textMember = TEXT_BLOCKS.get(type)
  if (textMember !== undefined) gatherText(rest, textMember, gathered)
  else if (type === 'tool_result' || type === 'search_result') gatherHolder(rest, gathered)
  else if (type === 'document') gatherDocument(rest, gathered)
  else if (type === 'image') gatherOther(rest, kindOfPicture(rest.source), gathered)
  else if (STRUCTURED_BLOCKS.some((one) => one === type)) gathered.structures.push(rest)
  else gatherOther(rest, undefined, gathered)
}

function gatherHolder({ content, ...rest }: Members, gathered: Gathered): void {
  gatherContent(content, gathered)
  gatherRest(rest, gathered)
}

/** The text of a document is text like any other; a file is not. */
function gatherDocument(block: Members, gathered: Gathered): void {
  const { source, ...rest } = block
  const { type, data, content } = isMembers(source) ? source : {}
  if (type === 'text' && typeof data === 'string') {
    gathered.texts.push(data)
    gatherRest(rest, gathered)
  } else if (type === 'content') {
    gatherContent(content, gathered)
    gatherRest(rest, gathered)
  } else {
    gatherOther(block, BINARY_SOURCES.some((one) => one === type) ? 'file' : undefined, gathered)
  }
}
