import type { Need } from '../catalogue/price-classes.ts'
import { inputOf, type Prompt } from './bound.ts'
import { emptyPrompt } from './gather.ts'
import { CHOICES_MOST, CONTENT_REQUEST, COUNT_REQUEST, GENERATION_CONFIG, TOOL } from './gemini-members.ts'
import { spelled, spellingIn } from './gemini-names.ts'
import { gatherContent, itemsIn } from './gemini-parts.ts'
import { OPEN_BRACE } from './json-bytes.ts'
import {
  isGiven,
  isMembers,
  type Members,
  outputCapOf,
  outputLimitOf,
  outputOf,
  readMembers,
  refusal,
  tierIn,
} from './members.ts'
import { OUTPUT_LIMITS } from './output-limits.ts'
import type { ModelAsk, ModelLimits, ModelRequest } from './protocol.ts'
import { PLAIN_PROFILE } from './route-profile.ts'
import { memberIn, spliceJson, withOnlyLimit } from './splice-json.ts'
import { MODEL_NAME_LENGTH } from './typed-members.ts'

/** Members that an upstream writes into the prompt. */
const SCHEMAS = ['responseSchema', 'responseJsonSchema', '_responseJsonSchema']

/** The model is in the path of this protocol, and nowhere else. */
export function modelOf(_body: unknown, inPath: string | undefined): string {
  if (inPath === undefined || inPath === '' || inPath.length > MODEL_NAME_LENGTH) {
    throw refusal(`Name a model in the path, in 1 to ${MODEL_NAME_LENGTH} characters.`)
  }
  return inPath
}

/** What a request for content asks for, whole or as a stream: that is in its path too. */
export function ask({ body, rawBody }: ModelRequest, limits: ModelLimits, isStream: boolean): ModelAsk {
  const { members: given, unknown, needs: named } = readMembers(body, CONTENT_REQUEST, limits.sold)
  const { members, config, input } = read(given, limits)
  const needs = withDefaultModalities(named, config, limits)
  if (isGiven(members.model)) throw refusal('"model" is not supported: name the model only in the path.')
  const limit = outputLimitOf(config, 'maxOutputTokens', limits)
  const choices = isStream ? onlyChoiceOf(config) : choicesOf(config)
  const outputCap = outputCapOf(limits)
  const output = outputOf({ needs, isStream, choices, given: limit, outputCap, ...NAMES })
  const { outputLimit } = output
  return {
    ...input,
    ...output,
    needs,
    tier: tierIn(members.serviceTier),
    isStream,
    choices,
    isDefaultLimit: limit === undefined,
    unknownMembers: unknown,
    bodyFor: (_, { outputLimit: name } = PLAIN_PROFILE) =>
      limit !== undefined && limit !== limits.outputAtMost && name === null
        ? rawBody
        : withLimit(given, rawBody, outputLimit, name),
  }
}

const NAMES = { limitName: 'generationConfig.maxOutputTokens', modalities: 'generationConfig.responseModalities' }
const OUTPUT_PARTS = ['output_audio', 'output_image'] as const

/** A model that draws or speaks does so also where nobody says what the answer should be. */
function withDefaultModalities(needs: ReadonlySet<Need>, config: Members, { sold }: ModelLimits): ReadonlySet<Need> {
  const { responseModalities } = config
  if (itemsIn(responseModalities).length > 0) return needs
  return new Set([...needs, ...OUTPUT_PARTS.filter((name) => sold?.needs.has(name))])
}

/** What a request to count tokens asks for: contents, or a request for content as it would be sent. */
export function askToCount({ body, rawBody }: ModelRequest, limits: ModelLimits): ModelAsk {
  const { members: given, unknown } = readMembers(body, COUNT_REQUEST, limits.sold)
  const { generateContentRequest: request } = spelled(given, COUNT_REQUEST)
  const { members, input } = read(isGiven(request) ? membersIn(request, '"generateContentRequest"') : given, limits)
  return {
    ...input,
    isStream: false,
    choices: 1,
    outputLimit: 0,
    isDefaultLimit: false,
    unknownMembers: unknown,
    bodyFor: (upstreamModel) =>
      isGiven(request) && isGiven(members.model) ? withModel(given, rawBody, upstreamModel) : rawBody,
  }
}

type Read = {
  readonly members: Members
  readonly config: Members
  readonly input: Pick<ModelAsk, 'wantsUsage' | 'inputMost' | 'inputEstimate' | 'inputText' | 'partsMost'>
}

function read(body: Members, limits: ModelLimits): Read {
  const members = spelled(body, CONTENT_REQUEST)
  const { contents, generationConfig } = members
  if (itemsIn(contents).length === 0) throw refusal('"contents" must be an array with at least one content.')
  const config = isGiven(generationConfig)
    ? spelled(membersIn(generationConfig, '"generationConfig"'), GENERATION_CONFIG)
    : {}
  return { members, config, input: { wantsUsage: true, ...inputOf(promptOf(members, config, limits), limits) } }
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
  throw refusal('"candidateCount" must be 1 in a stream. Ask for several without streaming.')
}

function promptOf(members: Members, config: Members, limits: ModelLimits): Prompt {
  const { model: _, contents, systemInstruction, tools, generationConfig: __, ...rest } = members
  const gathered = emptyPrompt(limits)
  const turns = [...itemsIn(systemInstruction), ...itemsIn(contents)]
  for (const turn of turns) gatherContent(turn, gathered)
  if (isGiven(tools)) gathered.structures.push(tools)
  const others: Record<string, unknown>[] = [rest]
  for (const [name, value] of Object.entries(config)) {
    if (SCHEMAS.includes(name)) gathered.structures.push(value)
    else others.push({ [name]: value })
  }
  return { ...gathered, others, messages: turns.length, tools: countTools(tools), declaredTokens: 0 }
}

function countTools(tools: unknown): number {
  let count = 0
  for (const tool of itemsIn(tools)) {
    const { functionDeclarations } = isMembers(tool) ? spelled(tool, TOOL) : {}
    count += Math.max(1, itemsIn(functionDeclarations).length)
  }
  return count
}

/** The body with an output limit: in the spelling that an upstream reads, else that which it has. */
function withLimit(members: Members, rawBody: Buffer, limit: number, name: string | null): Buffer {
  const place = spellingIn(members, 'generationConfig')
  const config = members[place]
  const given = isMembers(config) ? config : {}
  const limitName = name ?? spellingIn(given, 'maxOutputTokens')
  const among = OUTPUT_LIMITS.gemini
  return within(rawBody, place, (object) => withOnlyLimit(object, given, { name: limitName, among, limit }))
}

/** The request that is counted names its model as the upstream does. */
function withModel(members: Members, rawBody: Buffer, upstreamModel: string): Buffer {
  const name = spellingIn(members, 'generateContentRequest')
  const model = JSON.stringify(`models/${upstreamModel}`)
  return within(rawBody, name, (object) => spliceJson(object, { model }))
}

/** Changes an object within the body, and makes that where there is none. The body itself is given where nothing changes. */
function within(rawBody: Buffer, name: string, change: (object: Buffer) => Buffer): Buffer {
  const inner = memberIn(rawBody, name)
  const object = inner?.at(0) === OPEN_BRACE ? inner : EMPTY_OBJECT
  const changed = change(object)
  return changed === object ? rawBody : spliceJson(rawBody, { [name]: changed.toString() })
}

const EMPTY_OBJECT = Buffer.from('{}')
