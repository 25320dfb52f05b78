import { inputOf, type Prompt } from './bound.ts'
import type { Gathered } from './gather.ts'
import { namesOf, spelled, spellingIn } from './gemini-names.ts'
import { gatherContent, itemsIn } from './gemini-parts.ts'
import {
  allowOnly,
  isGiven,
  isMembers,
  type Members,
  MODEL_NAME_LENGTH,
  OTHER_MODEL,
  outputLimitOf,
  refusal,
  refuseMembers,
} from './members.ts'
import type { ModelAsk, ModelLimits, ModelRequest } from './protocol.ts'
import { memberIn, spliceJson } from './splice-json.ts'

const CHOICES_MOST = 8
const RUN_UPSTREAM = 'what an upstream runs is not metered.'
const STORED = 'what an upstream has stored is not in the bound of the input, and has a price of its own.'
const NOT_TEXT = 'answers that are no text have prices of their own.'

/** Members that cost money beyond the tokens that are metered. */
const REFUSED: Readonly<Record<string, string>> = {
  cachedContent: STORED,
  continuationToken: STORED,
  modelArmorConfig: RUN_UPSTREAM,
  generationOutputConfig: RUN_UPSTREAM,
}

const REFUSED_IN_CONFIG: Readonly<Record<string, string>> = {
  speechConfig: NOT_TEXT,
  imageConfig: NOT_TEXT,
  videoConfig: NOT_TEXT,
  translationConfig: NOT_TEXT,
  routingConfig: OTHER_MODEL,
  modelSelectionConfig: OTHER_MODEL,
  modelConfig: OTHER_MODEL,
  audioTranscriptionConfig: OTHER_MODEL,
}

const BODY = namesOf(
  ...Object.keys(REFUSED),
  ...['model', 'contents', 'systemInstruction', 'tools', 'generationConfig', 'serviceTier'],
)
const CONFIG = namesOf(
  ...Object.keys(REFUSED_IN_CONFIG),
  ...['maxOutputTokens', 'candidateCount', 'responseModalities', 'responseFormat'],
)
const TOOL = namesOf('functionDeclarations')
const FORMAT = namesOf('text')
const COUNT = namesOf('generateContentRequest')
/** Members that an upstream writes into the prompt. */
const SCHEMAS = namesOf('responseSchema', 'responseJsonSchema')

/** The model is in the path of this protocol, and nowhere else. */
export function modelOf(_body: unknown, inPath: string | undefined): string {
  if (inPath === undefined || inPath === '' || inPath.length > MODEL_NAME_LENGTH) {
    throw refusal(`Name a model in the path, in 1 to ${MODEL_NAME_LENGTH} characters.`)
  }
  return inPath
}

/** What a request for content asks for, whole or as a stream: that is in its path too. */
export function ask({ body, rawBody }: ModelRequest, limits: ModelLimits, isStream: boolean): ModelAsk {
  const { members, config, input } = read(body, limits)
  if (isGiven(members.model)) throw refusal('"model" is not taken: name the model in the path alone.')
  const given = outputLimitOf(config, 'maxOutputTokens', limits)
  const outputLimit = given ?? limits.outputCap
  return {
    ...input,
    isStream,
    choices: isStream ? onlyChoiceOf(config) : choicesOf(config),
    outputLimit,
    isDefaultLimit: given === undefined,
    bodyFor: () => (given === undefined ? withLimit(body, rawBody, outputLimit) : rawBody),
  }
}

/** What a request to count tokens asks for: contents, or a request for content as it would be sent. */
export function askToCount({ body, rawBody }: ModelRequest, limits: ModelLimits): ModelAsk {
  const { generateContentRequest: request } = spelled(membersIn(body, 'The body'), COUNT)
  const { members, input } = read(isGiven(request) ? request : body, limits)
  return {
    ...input,
    isStream: false,
    choices: 1,
    outputLimit: 0,
    isDefaultLimit: false,
    bodyFor: (upstreamModel) =>
      isGiven(request) && isGiven(members.model) ? withModel(body, rawBody, upstreamModel) : rawBody,
  }
}

type Read = {
  readonly members: Members
  readonly config: Members
  readonly input: Pick<ModelAsk, 'wantsUsage' | 'inputMost' | 'inputEstimate' | 'inputText'>
}

function read(body: unknown, limits: ModelLimits): Read {
  const members = spelled(membersIn(body, 'The body'), BODY)
  const { contents, generationConfig } = members
  if (itemsIn(contents).length === 0) throw refusal('"contents" must be an array with a content.')
  const config = isGiven(generationConfig) ? spelled(membersIn(generationConfig, '"generationConfig"'), CONFIG) : {}
  refusePriced(members, config)
  return { members, config, input: { wantsUsage: true, ...inputOf(promptOf(members, config), limits) } }
}

function membersIn(value: unknown, what: string): Members {
  if (!isMembers(value)) throw refusal(`${what} must be a JSON object.`)
  return value
}

function choicesOf({ candidateCount: count }: Members): number {
  if (!isGiven(count)) return 1
  if (typeof count === 'number' && Number.isInteger(count) && count >= 1 && count <= CHOICES_MOST) return count
  throw refusal(`"candidateCount" must be a whole number from 1 to ${CHOICES_MOST}.`)
}

/** Such a stream has no end of its own but the last of its candidates, and upstreams may give fewer than were asked for. */
function onlyChoiceOf(config: Members): number {
  if (choicesOf(config) === 1) return 1
  throw refusal('"candidateCount" is taken as 1 only in a stream. Ask for several without streaming.')
}

function refusePriced(members: Members, config: Members): void {
  refuseMembers(members, REFUSED)
  refuseMembers(config, REFUSED_IN_CONFIG)
  allowOnly(members, 'serviceTier', ['standard', 'unspecified'], 'other tiers have prices of their own.')
  for (const modality of itemsIn(config.responseModalities)) {
    if (modality !== 'TEXT') throw refusal(`"responseModalities" may have "TEXT" only: ${NOT_TEXT}`)
  }
  for (const format of itemsIn(config.responseFormat)) {
    if (!isMembers(format) || otherThan('text', spelled(format, FORMAT)) !== undefined) {
      throw refusal(`"responseFormat" may have "text" only: ${NOT_TEXT}`)
    }
  }
  for (const tool of itemsIn(members.tools)) refuseRunUpstream(tool)
}

/** A search, a sandbox for code and the like are each a member of a tool. */
function refuseRunUpstream(tool: unknown): void {
  const other = otherThan('functionDeclarations', spelled(membersIn(tool, 'A tool in "tools"'), TOOL))
  if (other === undefined) return
  throw refusal(
    `"tools" may have "functionDeclarations" only, not ${JSON.stringify(other.slice(0, 100))}: ${RUN_UPSTREAM}`,
  )
}

function otherThan(allowed: string, members: Members): string | undefined {
  return Object.keys(members).find((name) => name !== allowed && isGiven(members[name]))
}

function promptOf(members: Members, config: Members): Prompt {
  const { model: _, contents, systemInstruction, tools, generationConfig: __, ...rest } = members
  const gathered: Gathered = { texts: [], structures: [], parts: [] }
  const turns = [...itemsIn(systemInstruction), ...itemsIn(contents)]
  for (const turn of turns) gatherContent(turn, gathered)
  if (isGiven(tools)) gathered.structures.push(tools)
  const others: Record<string, unknown>[] = [rest]
  for (const [name, value] of Object.entries(config)) {
    if (isSchema(name)) gathered.structures.push(value)
    else others.push({ [name]: value })
  }
  return { ...gathered, others, messages: turns.length, tools: countTools(tools), declaredTokens: 0 }
}

/** One of them is known with an underscore before its name too. */
function isSchema(name: string): boolean {
  return SCHEMAS.has(name.replaceAll('_', '').toLowerCase())
}

function countTools(tools: unknown): number {
  let count = 0
  for (const tool of itemsIn(tools)) {
    const { functionDeclarations } = isMembers(tool) ? spelled(tool, TOOL) : {}
    count += Math.max(1, itemsIn(functionDeclarations).length)
  }
  return count
}

/** The body with an output limit, in the spelling that it has where it says something of that. */
function withLimit(body: unknown, rawBody: Buffer, limit: number): Buffer {
  const members = isMembers(body) ? body : {}
  const name = spellingIn(members, 'generationConfig')
  const config = members[name]
  const limitName = isMembers(config) ? spellingIn(config, 'maxOutputTokens') : 'maxOutputTokens'
  return spliceWithin(rawBody, name, { [limitName]: String(limit) })
}

/** The request that is counted names its model as the upstream does. */
function withModel(body: unknown, rawBody: Buffer, upstreamModel: string): Buffer {
  const name = spellingIn(isMembers(body) ? body : {}, 'generateContentRequest')
  return spliceWithin(rawBody, name, { model: JSON.stringify(`models/${upstreamModel}`) })
}

/** Sets members of an object within the body, and makes that where there is none. */
function spliceWithin(rawBody: Buffer, name: string, members: Readonly<Record<string, string>>): Buffer {
  const inner = memberIn(rawBody, name)
  const object = inner?.at(0) === OPEN_BRACE ? inner : EMPTY_OBJECT
  return spliceJson(rawBody, { [name]: spliceJson(object, members).toString() })
}

const OPEN_BRACE = 0x7b
const EMPTY_OBJECT = Buffer.from('{}')
