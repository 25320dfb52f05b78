import { OPENAI_BETAS, unknownBetas } from './betas.ts'
import { inputOf, type Prompt } from './bound.ts'
import { emptyPrompt, gatherBeside, gatherMessage, kindOfPicture, type MemberPlaces, type PartForms } from './gather.ts'
import {
  isGiven,
  isMembers,
  isStreamed,
  listOf,
  type Members,
  messagesOf,
  modelOf,
  outputCapOf,
  outputLimitOf,
  outputOf,
  readMembers,
  refusal,
  tierIn,
} from './members.ts'
import { CHAT, CHOICES_MOST } from './openai-members.ts'
import { OUTPUT_LIMITS } from './output-limits.ts'
import type { ModelAsk, ModelLimits, ModelRequest } from './protocol.ts'
import { PLAIN_PROFILE } from './route-profile.ts'
import { memberIn, spliceJson, withOnlyLimit } from './splice-json.ts'

export { modelOf }

const PLACES: MemberPlaces = {
  outside: ['model', 'messages', 'metadata', 'logit_bias'],
  structures: ['tools', 'functions', 'response_format'],
}
const PARTS: PartForms = {
  texts: new Map([
    ['text', 'text'],
    ['refusal', 'refusal'],
  ]),
  kindOf(type, { image_url: picture }) {
    if (type === 'image_url') return kindOfPicture(picture)
    if (type === 'input_audio') return 'audio'
    return type === 'file' ? 'file' : undefined
  },
}

/** What a request for a chat completion asks for. */
export function ask({ body, rawBody, headers }: ModelRequest, limits: ModelLimits): ModelAsk {
  const { members, unknown, needs } = readMembers(body, CHAT, limits.sold)
  const model = modelOf(body)
  const messages = messagesOf(members)
  const isStream = isStreamed(members)
  const given = [
    outputLimitOf(members, 'max_completion_tokens', limits),
    outputLimitOf(members, 'max_tokens', limits),
  ].filter((limit) => limit !== undefined)
  const isDefaultLimit = given.length === 0
  const wantsUsage = wantsUsageIn(members)
  const choices = choicesOf(members)
  const output = outputOf({
    ...{ needs, isStream, choices, outputCap: outputCapOf(limits), modalities: 'modalities' },
    given: isDefaultLimit ? undefined : Math.max(...given),
    limitName: isGiven(members.max_completion_tokens) ? 'max_completion_tokens' : 'max_tokens',
  })
  const { outputLimit } = output
  return {
    ...inputOf(promptOf(members, messages, limits), limits),
    ...output,
    needs,
    tier: tierIn(members.service_tier),
    isStream,
    wantsUsage,
    choices,
    isDefaultLimit,
    unknownMembers: [...unknown, ...unknownBetas(headers, OPENAI_BETAS)],
    bodyFor(upstreamModel, { outputLimit: name } = PLAIN_PROFILE) {
      const set: Record<string, string> = {}
      if (upstreamModel !== model) set.model = JSON.stringify(upstreamModel)
      if (isDefaultLimit && name === null) set.max_completion_tokens = String(outputLimit)
      // As the caller named it, unless there is less for it.
      for (const given of OUTPUT_LIMITS.openai)
        if (name === null && Number(members[given] ?? 0) > outputLimit) set[given] = String(outputLimit)
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

function promptOf(members: Members, messages: readonly unknown[], limits: ModelLimits): Prompt {
  const gathered = emptyPrompt(limits)
  for (const message of messages) gatherMessage(message, PARTS, gathered)
  const others = gatherBeside(members, PLACES, gathered)
  const tools = listOf(members.tools, 'tools').length + listOf(members.functions, 'functions').length
  return { ...gathered, others, messages: messages.length, tools, declaredTokens: 0 }
}
