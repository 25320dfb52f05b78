import { bytesOf, bytesOfStructure, OVERHEAD } from './bound.ts'
import { estimateTokens } from './estimate.ts'
import type { Gathered } from './gather.ts'
import { BATCH_EMBED_REQUEST, EMBED_CONFIG, EMBED_REQUEST } from './gemini-members.ts'
import { spelled } from './gemini-names.ts'
import { gatherContent } from './gemini-parts.ts'
import { isGiven, isMembers, type Members, readMembers, refusal } from './members.ts'
import type { ModelAsk, ModelLimits, ModelRequest } from './protocol.ts'
import { memberIn, spliceItems, spliceJson } from './splice-json.ts'
import { bytesOfVectors, countable, INPUTS_MOST } from './vectors.ts'

/** The first and last tokens around a text, and what an upstream writes before it where it has a title or a kind of task. */
const INPUT_OVERHEAD = 32
/** A number with every digit of a float, on an indented line of its own, as this protocol's upstreams write it. */
const BYTES_OF_NUMBER = 36
/** What a request for one vector asks for. */
export function ask({ body, rawBody }: ModelRequest, limits: ModelLimits): ModelAsk {
  const { members, unknown } = readMembers(body, EMBED_REQUEST)
  const bodyFor = (upstreamModel: string) => withModel(rawBody, members, upstreamModel)
  return { ...askedOf([inputOf(members, '"content"')], limits), unknownMembers: unknown, bodyFor }
}

/** What a request for several asks for: each is a request for one. */
export function askForMany({ body, rawBody }: ModelRequest, limits: ModelLimits): ModelAsk {
  const { members, unknown } = readMembers(body, BATCH_EMBED_REQUEST)
  const requests = requestsIn(members)
  const inputs = requests.map((request, at) => inputOf(request, `"requests[${at}].content"`))
  const bodyFor = (upstreamModel: string) => withModels(rawBody, requests, upstreamModel)
  return { ...askedOf(inputs, limits), unknownMembers: unknown, bodyFor }
}

function requestsIn({ requests }: Members): readonly Members[] {
  if (!Array.isArray(requests) || requests.length === 0 || !requests.every(isMembers))
    throw refusal('"requests" must be an array of requests, each with a "content".')
  if (requests.length > INPUTS_MOST)
    throw refusal(`"requests" has ${requests.length} requests; the limit is ${INPUTS_MOST}. Send fewer.`)
  return requests
}

/** One text, with whatever stands before it. */
type Input = { readonly texts: readonly string[]; readonly most: number; readonly dimensions: unknown }

function inputOf(request: Members, what: string): Input {
  const { model: _, content, embedContentConfig, ...beside } = spelled(request, EMBED_REQUEST)
  if (!isMembers(content)) throw refusal(`${what} must be a content: {"parts": [{"text": "…"}]}.`)
  const gathered: Gathered = { texts: [], structures: [], parts: [], takesAudio: false }
  gatherContent(content, gathered)
  const config = isMembers(embedContentConfig) ? spelled(embedContentConfig, EMBED_CONFIG) : {}
  for (const options of [beside, config]) gatherOptions(options, gathered)
  const { texts, structures, parts } = gathered
  let most = INPUT_OVERHEAD
  for (const text of texts) most += OVERHEAD.text + bytesOf(text)
  for (const structure of structures) most += OVERHEAD.text + bytesOfStructure(structure)
  // A part that is no text is refused by its table; were one not, it might fill the window.
  if (parts.length > 0) most = Number.POSITIVE_INFINITY
  return { texts, most, dimensions: beside.outputDimensionality ?? config.outputDimensionality }
}

/** A title and a kind of task may be written before the text, and so may whatever we do not know. */
function gatherOptions({ title, outputDimensionality: _, ...rest }: Members, { texts, structures }: Gathered): void {
  if (typeof title === 'string') texts.push(title)
  else if (isGiven(title)) structures.push(title)
  if (Object.keys(rest).length > 0) structures.push(rest)
}

type Asked = Omit<ModelAsk, 'unknownMembers' | 'bodyFor'>

/** Vectors are not metered; what they are made of is. Each input has the context window for itself. */
function askedOf(inputs: readonly Input[], { contextWindow }: ModelLimits): Asked {
  let inputMost = 0
  let inputEstimate = 0
  for (const { texts, most } of inputs) {
    const within = Math.min(contextWindow, most)
    inputMost += within
    inputEstimate += Math.min(within, sumOf(texts.map(estimateTokens)))
  }
  return {
    isStream: false,
    wantsUsage: false,
    choices: 1,
    outputLimit: 0,
    isDefaultLimit: false,
    inputMost,
    inputEstimate,
    replyBytes: bytesOfVectors(
      inputs.map(({ dimensions }) => dimensions),
      BYTES_OF_NUMBER,
    ),
    ...countable(
      inputs.map(({ texts }) => texts.join('\n')),
      contextWindow,
    ),
  }
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0)
}

/** The request with the model that its upstream knows, where it names one. The path decides; a name that differs from it is replaced. */
function withModel(request: Buffer, { model }: Members, upstreamModel: string): Buffer {
  const name = `models/${upstreamModel}`
  return !isGiven(model) || model === name ? request : spliceJson(request, { model: JSON.stringify(name) })
}

function withModels(rawBody: Buffer, requests: readonly Members[], upstreamModel: string): Buffer {
  const list = memberIn(rawBody, 'requests')
  if (list === undefined) return rawBody
  const changed = spliceItems(list, (item, at) => withModel(item, requests[at] ?? {}, upstreamModel))
  return changed === list ? rawBody : spliceJson(rawBody, { requests: changed.toString() })
}
