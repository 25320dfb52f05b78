import { isObject, type JsonObject } from '../../json.ts'
import { hashOf, Random } from '../../random.ts'
import type { Asked } from '../../upstream.ts'
import { given, isModelName, isWholeNumber, type Wrong } from './question.ts'
import { bytesOf, tokensOfBytes } from './tokens.ts'
import type { Made } from './whole-reply.ts'

const DIMENSIONS = 8
const DIMENSIONS_LIMIT = 3_072
const INPUTS_LIMIT = 2_048

/** A vector for each input, from seed, model and input alone. */
export function embeddingsFor({ body, seed }: Pick<Asked, 'body' | 'seed'>): Made | Wrong {
  if (!isObject(body)) return { wrong: 'We could not parse the JSON body of your request.', field: null }
  const wrong = wrongField(body)
  if (wrong !== undefined) return { wrong: `Invalid value for '${wrong}'.`, field: wrong }
  const model = String(body.model)
  const inputs = inputsIn(body.input) ?? []
  const dimensions = Number(body.dimensions ?? DIMENSIONS)
  const written = body.encoding_format === 'base64' ? inBase64 : (vector: readonly number[]) => vector
  return {
    model,
    inputTokens: embeddingTokens(inputs),
    outputTokens: () => 0,
    usage: (tokens) => ({ prompt_tokens: tokens, total_tokens: tokens }),
    body: () => ({
      object: 'list',
      data: inputs.map((input, index) => ({
        object: 'embedding',
        index,
        embedding: written(vectorOf(hashOf(seed, model, JSON.stringify(input)), dimensions)),
      })),
      model,
    }),
  }
}

/** What is counted: all texts together as in a conversation, and each id of a token once. */
export function embeddingTokens(inputs: readonly (string | readonly number[])[]): number {
  let bytes = 0
  let ids = 0
  for (const input of inputs) {
    if (typeof input === 'string') bytes += bytesOf(input)
    else ids += input.length
  }
  return tokensOfBytes(bytes) + ids
}

function wrongField(body: JsonObject): string | undefined {
  const { model, input, dimensions, encoding_format: format } = body
  if (!isModelName(model)) return 'model'
  if (inputsIn(input) === undefined) return 'input'
  if (given(dimensions) && !(isWholeNumber(dimensions, 1) && dimensions <= DIMENSIONS_LIMIT)) return 'dimensions'
  if (given(format) && format !== 'float' && format !== 'base64') return 'encoding_format'
  return undefined
}

function inputsIn(input: unknown): readonly (string | readonly number[])[] | undefined {
  const items = typeof input === 'string' || isTokens(input) ? [input] : input
  if (!Array.isArray(items) || items.length === 0 || items.length > INPUTS_LIMIT) return undefined
  const isRight = items.every((item) => typeof item === 'string' && item !== '') || items.every(isTokens)
  return isRight ? items : undefined
}

function isTokens(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0 && value.every((id) => isWholeNumber(id, 0))
}

/** Of length 1, as vendors give them. */
export function vectorOf(state: number, dimensions: number): readonly number[] {
  const random = new Random(state)
  const vector = Array.from({ length: dimensions }, () => random.fraction() * 2 - 1)
  const length = Math.hypot(...vector) || 1
  return vector.map((value) => Math.fround(value / length))
}

function inBase64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4)
  for (const [at, value] of vector.entries()) bytes.writeFloatLE(value, at * 4)
  return bytes.toString('base64')
}
