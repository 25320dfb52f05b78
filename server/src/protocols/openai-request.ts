import { OPENAI_BETAS, unknownBetas } from './betas.ts'
import { inputOf, type Prompt } from './bound.ts'
import { type Gathered, gatherOther, gatherRest, gatherText, isShortRole, kindOfPicture } from './gather.ts'
import {
  isGiven,
  isMembers,
  isStreamed,
  listOf,
  type Members,
  messagesOf,
  modelOf,
  outputLimitOf,
  readMembers,
  refusal,
} from './members.ts'
import { CHAT, CHOICES_MOST } from './openai-members.ts'
import { OUTPUT_LIMITS } from './output-limits.ts'
import type { ModelAsk, ModelLimits, ModelRequest, PartKind } from './protocol.ts'
import { PLAIN_PROFILE } from './route-profile.ts'
import { memberIn, spliceJson, withOnlyLimit } from './splice-json.ts'

export { modelOf }

/** Members that no prompt has, and that may be large. */
const OUTSIDE_PROMPT = ['model', 'messages', 'metadata', 'logit_bias']
/** Members that an upstream writes into the prompt. */
const STRUCTURES = ['tools', 'functions', 'response_format']
/** Where the text of a part stands, by the part's type. */
const TEXT_PARTS: ReadonlyMap<unknown, string> = new Map([
  ['text', 'text'],
  ['refusal', 'refusal'],
])
/** What a request for a chat completion asks for. */
export function ask({ body, rawBody, headers }: ModelRequest, limits: ModelLimits): ModelAsk {
  const { members, unknown } = readMembers(body, CHAT)
  const model = modelOf(body)
  const messages = messagesOf(members)
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
    unknownMembers: [...unknown, ...unknownBetas(headers, OPENAI_BETAS)],
    bodyFor(upstreamModel, { outputLimit: name } = PLAIN_PROFILE) {
      const set: Record<string, string> = {}
      if (upstreamModel !== model) set.model = JSON.stringify(upstreamModel)
      if (isDefaultLimit && name === null) set.max_completion_tokens = String(outputLimit)
      if (isStream && !wantsUsage) set.stream_options = optionsWithUsage(rawBody)
      const sent = Object.keys(set).length === 0 ? rawBody : spliceJson(rawBody, set)
      if (name === null) return sent
      return withOnlyLimit(sent, members, { name, among: OUTPUT_LIMITS.openai, limit: outputLimit })
    },
  }
}

function choicesOf({ n }: Members): number {
  if (!isGiven(n)) return 1
  if (typeof n === 'number' && Number.isInteger(n) && n >= 1 && n <= CHOICES_MOST) return n
  throw refusal(`"n" must be a whole number from 1 to ${CHOICES_MOST}.`)
}

function wantsUsageIn({ stream_options: options }: Members): boolean {
  return isMembers(options) && options.include_usage === true
}

/** The caller's stream options as they came, with the usage asked for, which is how a stream is metered. */
function optionsWithUsage(rawBody: Buffer): string {
  const options = memberIn(rawBody, 'stream_options')
  if (options?.at(0) !== '{'.charCodeAt(0)) return '{"include_usage":true}'
  return spliceJson(options, { include_usage: 'true' }).toString()
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
  gatherRest(rest, gathered)
}

function gatherPart(part: unknown, gathered: Gathered): void {
  if (!isMembers(part)) {
    gathered.structures.push(part)
    return
  }
  const { type, ...rest } = part
  const member = TEXT_PARTS.get(type)
  if (member !== undefined) gatherText(rest, member, gathered)
  else gatherOther(rest, kindOfPart(type, rest), gathered)
}

function kindOfPart(type: unknown, { image_url: picture }: Members): PartKind | undefined {
  if (type === 'image_url') return kindOfPicture(picture)
  return type === 'file' ? 'file' : undefined
}
