import { inputOf, type Prompt } from './bound.ts'
import { type Gathered, gatherOther, gatherRest, gatherText, isShortRole } from './gather.ts'
import {
  allowOnly,
  isGiven,
  isMembers,
  isStreamed,
  listOf,
  type Members,
  membersOf,
  messagesOf,
  modelOf,
  OTHER_MODEL,
  outputLimitOf,
  refusal,
  refuseMembers,
} from './members.ts'
import type { ModelAsk, ModelLimits, ModelRequest } from './protocol.ts'
import { spliceJson, withModel } from './splice-json.ts'

export { modelOf }

const RUN_UPSTREAM = 'what an upstream runs is not metered.'

/** Members that cost money beyond the tokens that are metered. */
const REFUSED: Readonly<Record<string, string>> = {
  container: RUN_UPSTREAM,
  mcp_servers: RUN_UPSTREAM,
  anthropic_beta: 'send it as the header anthropic-beta.',
  fallbacks: OTHER_MODEL,
  fallback_credit_token: OTHER_MODEL,
  compaction: 'what it generates is charged beyond the output limit.',
  thread: 'what an upstream has stored of a conversation is not in the bound of the input.',
}

/** Beginnings of what a caller may ask for in the header `anthropic-beta` that changes prices by itself. */
const PRICED_BETAS = [
  'context-1m',
  'fast-mode',
  'server-side-fallback',
  'fallback-credit',
  'compact-',
  'message-threads',
]

/** Tools whose definition the upstream has and which the caller runs, with the tokens that they take at the most. */
const CLIENT_TOOLS: readonly (readonly [RegExp, number])[] = [
  [/^(bash|text_editor|computer|memory)_\d{8}$/, 2000],
  [/^computer_toolset_\d{8}$/, 10_000],
]

const KNOWN = new Set([
  ...Object.keys(REFUSED),
  ...['model', 'messages', 'system', 'max_tokens', 'stream', 'tools', 'service_tier', 'speed', 'inference_geo'],
  ...['cache_control', 'context_management'],
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
const STRUCTURED_BLOCKS = ['tool_use', 'redacted_thinking']
const BINARY_SOURCES = ['base64', 'url', 'file']

/** What a request for a message asks for. */
export function ask(request: ModelRequest, limits: ModelLimits): ModelAsk {
  const { members, model, input } = read(request, limits)
  const isStream = isStreamed(members)
  const given = outputLimitOf(members, 'max_tokens', limits)
  const outputLimit = given ?? limits.outputCap
  return {
    ...input,
    isStream,
    outputLimit,
    isDefaultLimit: given === undefined,
    bodyFor(upstreamModel) {
      const set: Record<string, string> = {}
      if (upstreamModel !== model) set.model = JSON.stringify(upstreamModel)
      if (given === undefined) set.max_tokens = String(outputLimit)
      return Object.keys(set).length === 0 ? request.rawBody : spliceJson(request.rawBody, set)
    },
  }
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
  readonly input: Pick<ModelAsk, 'choices' | 'wantsUsage' | 'inputMost' | 'inputEstimate' | 'inputText'>
}

function read({ body, headers }: ModelRequest, limits: ModelLimits): Read {
  const members = membersOf(body, KNOWN)
  const model = modelOf(body)
  const messages = messagesOf(members)
  refusePriced(members)
  refuseBetas(headers['anthropic-beta'] ?? '')
  const input = { choices: 1, wantsUsage: true, ...inputOf(promptOf(members, messages), limits) }
  return { members, model, input }
}

function refusePriced(members: Members): void {
  refuseMembers(members, REFUSED)
  allowOnly(members, 'service_tier', ['auto', 'standard_only'], 'other tiers have prices of their own.')
  allowOnly(members, 'speed', ['standard'], 'other speeds have prices of their own.')
  allowOnly(members, 'inference_geo', ['global'], 'a region has a price of its own.')
  refuseLongCache(members.cache_control)
  const { context_management: management } = members
  if (!isGiven(management)) return
  for (const edit of listOf(isMembers(management) ? management.edits : management, 'context_management.edits')) {
    const type = isMembers(edit) ? edit.type : undefined
    if (typeof type === 'string' && type.startsWith('clear_')) continue
    throw refusal('"context_management" may clear only: what a summary generates is charged beyond the output limit.')
  }
}

function refuseBetas(header: string): void {
  for (const beta of header.split(',')) {
    const name = beta.trim().toLowerCase()
    if (PRICED_BETAS.some((priced) => name.startsWith(priced))) {
      throw refusal(`The header anthropic-beta may not have "${name}": it changes what a call costs.`)
    }
  }
}

function refuseLongCache(control: unknown): void {
  if (!isGiven(control)) return
  if (!isMembers(control)) throw refusal('"cache_control" must be an object.')
  if (isGiven(control.ttl) && control.ttl !== '5m') {
    throw refusal('"cache_control.ttl" is taken as "5m" only: a cache that is kept longer has a price of its own.')
  }
}

function promptOf(members: Members, messages: readonly unknown[]): Prompt {
  const gathered: Gathered = { texts: [], structures: [], parts: [] }
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
  if (!isMembers(tool)) throw refusal('A tool in "tools" must be an object.')
  refuseLongCache(tool.cache_control)
  const { type } = tool
  if (!isGiven(type) || type === 'custom') return 0
  const known = CLIENT_TOOLS.find(([pattern]) => typeof type === 'string' && pattern.test(type))
  if (known === undefined) throw refusal(`"tools" may not have a tool of type ${JSON.stringify(type)}: ${RUN_UPSTREAM}`)
  return known[1]
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
  const { type, cache_control: control, ...rest } = block
  refuseLongCache(control)
  const textMember = TEXT_BLOCKS.get(type)
  if (textMember !== undefined) gatherText(rest, textMember, gathered)
  else if (type === 'tool_result' || type === 'search_result') gatherHolder(rest, gathered)
  else if (type === 'document') gatherDocument(rest, gathered)
  else if (type === 'image') gatherOther(rest, 'image', gathered)
  else if (type === 'tool_addition') throw refusal(`A block of type "tool_addition" is not taken: ${RUN_UPSTREAM}`)
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
