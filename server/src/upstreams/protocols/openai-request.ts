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
import type { ModelAsk, ModelLimits, ModelRequest, PartKind } from './protocol.ts'
import { memberIn, spliceJson } from './splice-json.ts'

export { modelOf }

const CHOICES_MOST = 128
const SEARCH = 'what a search costs is not in the tokens of an answer.'

/** Members that cost money beyond the tokens that are metered, here or with an upstream that speaks the same protocol. */
const REFUSED: Readonly<Record<string, string>> = {
  web_search_options: SEARCH,
  search_parameters: SEARCH,
  search_options: SEARCH,
  enable_search: SEARCH,
  plugins: SEARCH,
  data_sources: SEARCH,
  moderation: OTHER_MODEL,
  models: OTHER_MODEL,
  fallbacks: OTHER_MODEL,
  route: OTHER_MODEL,
  audio: 'spoken answers have a price of their own.',
  prediction: 'what is predicted wrongly is charged beyond the output limit.',
  best_of: 'it generates more than it gives. Ask for choices by "n".',
  chat_template: 'a template can repeat the prompt without bound.',
  mm_processor_kwargs: 'it changes how many tokens a picture has.',
}

const CACHE = 'a cache that is kept longer has a price of its own.'
const KNOWN = new Set([
  ...Object.keys(REFUSED),
  ...[
    'model',
    'messages',
    'max_tokens',
    'max_completion_tokens',
    'n',
    'stream',
    'stream_options',
    'tools',
    'functions',
  ],
  ...['service_tier', 'modalities', 'prompt_cache_retention', 'prompt_cache_options'],
])
const STREAM_OPTIONS = new Set(['include_usage'])
/** Members that no prompt has, and that may be large. */
const OUTSIDE_PROMPT = ['model', 'messages', 'metadata', 'logit_bias']
/** Members that an upstream writes into the prompt. */
const STRUCTURES = ['tools', 'functions', 'response_format']
/** Where the text of a part stands, by the part's type. */
const TEXT_PARTS: ReadonlyMap<unknown, string> = new Map([
  ['text', 'text'],
  ['refusal', 'refusal'],
])
const OTHER_PARTS: ReadonlyMap<unknown, PartKind> = new Map([
  ['image_url', 'image'],
  ['input_audio', 'audio'],
  ['file', 'file'],
])

/** What a request for a chat completion asks for. */
export function ask({ body, rawBody }: ModelRequest, limits: ModelLimits): ModelAsk {
  const members = membersOf(body, KNOWN)
  const model = modelOf(body)
  const messages = messagesOf(members)
  refusePriced(members)
  const isStream = isStreamed(members)
  const given = [
    outputLimitOf(members, 'max_completion_tokens', limits),
    outputLimitOf(members, 'max_tokens', limits),
  ].filter((limit) => limit !== undefined)
  const isDefaultLimit = given.length === 0
  const outputLimit = isDefaultLimit ? limits.outputCap : Math.max(...given)
  const wantsUsage = wantsUsageIn(members)
  return {
    ...inputOf(promptOf(members, messages), limits),
    isStream,
    wantsUsage,
    choices: choicesOf(members),
    outputLimit,
    isDefaultLimit,
    bodyFor(upstreamModel) {
      const set: Record<string, string> = {}
      if (upstreamModel !== model) set.model = JSON.stringify(upstreamModel)
      if (isDefaultLimit) set.max_completion_tokens = String(outputLimit)
      if (isStream && !wantsUsage) set.stream_options = optionsWithUsage(rawBody)
      return Object.keys(set).length === 0 ? rawBody : spliceJson(rawBody, set)
    },
  }
}

function choicesOf({ n }: Members): number {
  if (!isGiven(n)) return 1
  if (typeof n === 'number' && Number.isInteger(n) && n >= 1 && n <= CHOICES_MOST) return n
  throw refusal(`"n" must be a whole number from 1 to ${CHOICES_MOST}.`)
}

function wantsUsageIn({ stream_options: options }: Members): boolean {
  if (!isGiven(options)) return false
  if (!isMembers(options)) throw refusal('"stream_options" must be an object.')
  return membersOf(options, STREAM_OPTIONS).include_usage === true
}

/** The caller's stream options as they came, with the usage asked for, which is how a stream is metered. */
function optionsWithUsage(rawBody: Buffer): string {
  const options = memberIn(rawBody, 'stream_options')
  if (options?.at(0) !== '{'.charCodeAt(0)) return '{"include_usage":true}'
  return spliceJson(options, { include_usage: 'true' }).toString()
}

function refusePriced(members: Members): void {
  refuseMembers(members, REFUSED)
  allowOnly(members, 'service_tier', ['auto', 'default'], 'other tiers have prices of their own.')
  allowOnly(members, 'prompt_cache_retention', ['in_memory', 'in-memory'], CACHE)
  refuseLongCache(members.prompt_cache_options, 'prompt_cache_options')
  for (const modality of listOf(members.modalities, 'modalities')) {
    if (modality !== 'text') throw refusal('"modalities" may have "text" only: other answers have prices of their own.')
  }
  for (const tool of listOf(members.tools, 'tools')) {
    const type = isMembers(tool) ? tool.type : undefined
    if (type === 'function' || type === 'custom') continue
    throw refusal('"tools" may have tools of type "function" or "custom" only: what an upstream runs is not metered.')
  }
  listOf(members.functions, 'functions')
}

function refuseLongCache(options: unknown, name: string): void {
  if (!isGiven(options)) return
  if (!isMembers(options)) throw refusal(`"${name}" must be an object.`)
  if (isGiven(options.ttl) && options.ttl !== '30m') throw refusal(`"${name}.ttl" is taken as "30m" only: ${CACHE}`)
}

function promptOf(members: Members, messages: readonly unknown[]): Prompt {
  const gathered: Gathered = { texts: [], structures: [], parts: [] }
  for (const message of messages) gatherMessage(message, gathered)
  const others: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(members)) {
    if (STRUCTURES.includes(name)) gathered.structures.push(value)
    else if (!OUTSIDE_PROMPT.includes(name)) others[name] = value
  }
  const tools = listOf(members.tools, 'tools').length + listOf(members.functions, 'functions').length
  return { ...gathered, others, messages: messages.length, tools, declaredTokens: 0 }
}

function gatherMessage(message: unknown, gathered: Gathered): void {
  if (!isMembers(message)) {
    gathered.structures.push(message)
    return
  }
  const { role, content, ...rest } = message
  if (!isShortRole(role)) gathered.structures.push(role)
  if (typeof content === 'string') gathered.texts.push(content)
  else if (Array.isArray(content)) for (const part of content) gatherPart(part, gathered)
  else if (isGiven(content)) gatherPart(content, gathered)
  // An answer that was spoken before, by its id.
  if (isGiven(rest.audio)) gathered.parts.push('audio')
  gatherRest(rest, gathered)
}

function gatherPart(part: unknown, gathered: Gathered): void {
  if (!isMembers(part)) {
    gathered.structures.push(part)
    return
  }
  refuseLongCache(part.prompt_cache_breakpoint, 'prompt_cache_breakpoint')
  const { type, ...rest } = part
  const member = TEXT_PARTS.get(type)
  if (member !== undefined) gatherText(rest, member, gathered)
  else gatherOther(rest, OTHER_PARTS.get(type), gathered)
}
