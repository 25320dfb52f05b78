import { isObject, type JsonObject } from '../../json.ts'
import { hashOf } from '../../random.ts'
import type { Asked } from '../../upstream.ts'
import { listIn, member, partsOf } from './gemini-question.ts'
import { embeddingTokens, vectorOf } from './openai-embeddings.ts'
import { given, isModelName, isWholeNumber, textOf, type Wrong } from './question.ts'
import type { Made } from './whole-reply.ts'

const DIMENSIONS = 8
const DIMENSIONS_LIMIT = 3_072
const REQUESTS_LIMIT = 2_048

/** One text, with its title before it, and how long its vector is. */
type Wanted = { readonly text: string; readonly dimensions: number }

/** A vector for each text, from seed, model and text alone. */
export function geminiEmbeddingsFor({ body, seed }: Pick<Asked, 'body' | 'seed'>, model: string, isBatch: boolean) {
  if (!isObject(body)) return { wrong: 'Invalid JSON payload received.', field: null } satisfies Wrong
  const requests = isBatch ? listIn(body, 'requests') : [body]
  const isRight = isModelName(model) && requests.length > 0 && requests.length <= REQUESTS_LIMIT
  const at = isRight ? requests.findIndex((request) => !isWellFormed(request, model)) : 0
  if (at >= 0) return { wrong: `Invalid value at '${isBatch ? `requests[${at}]` : 'content'}'.`, field: null }
  const wanted = requests.map(wantedIn)
  const vectors = () =>
    wanted.map(({ text, dimensions }) => ({ values: vectorOf(hashOf(seed, model, text), dimensions) }))
  const made: Made = {
    model,
    inputTokens: embeddingTokens(wanted.map(({ text }) => text)),
    outputTokens: () => 0,
    usage: (tokens) => ({ promptTokenCount: tokens, promptTokenDetails: [{ modality: 'TEXT', tokenCount: tokens }] }),
    body: () => (isBatch ? { embeddings: vectors() } : { embedding: vectors()[0] }),
  }
  return made
}

/** The vendor wants a text, and where a model is named, that of the path. */
function isWellFormed(request: JsonObject, model: string): boolean {
  const { text, dimensions } = wantedIn(request)
  const isNamed = !given(request.model) || request.model === `models/${model}`
  return isNamed && text !== '' && isWholeNumber(dimensions, 1) && dimensions <= DIMENSIONS_LIMIT
}

function wantedIn(request: JsonObject): Wanted {
  const config = member(request, 'embedContentConfig')
  const options = { ...(isObject(config) && config), ...request }
  const { content } = request
  const text = textOf(isObject(content) ? partsOf(content) : [])
  const { title } = options
  return {
    text: typeof title === 'string' && text !== '' ? title + text : text,
    dimensions: Number(member(options, 'outputDimensionality') ?? DIMENSIONS),
  }
}
