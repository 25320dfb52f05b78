import { OPENAI_BETAS, unknownBetas } from './betas.ts'
import { bytesOf, bytesOfStructure } from './bound.ts'
import { estimateTokens } from './estimate.ts'
import { type Members, modelOf, readMembers, refusal } from './members.ts'
import { EMBEDDINGS } from './openai-members.ts'
import type { ModelAsk, ModelLimits, ModelRequest } from './protocol.ts'
import { withModel } from './splice-json.ts'
import { bytesOfVectors, countable, INPUTS_MOST } from './vectors.ts'

/** A text, or the tokens of one. */
type Input = string | readonly number[]

/** The first and last tokens around an input, and a short instruction before it. */
const INPUT_OVERHEAD = 16
/** One token of every tokenizer that we count with, so that as many of it count as so many tokens. */
const ONE_TOKEN = ' in'

/** What a number takes: with every digit of a double, a sign, an exponent, a comma and a space; or four bytes in base64. */
const BYTES_OF_NUMBER = 26
const BYTES_OF_PACKED_NUMBER = 6

/** Members that no input has around it. Any other may be an instruction that stands before each. */
const OUTSIDE_INPUT = ['model', 'input', 'dimensions', 'encoding_format', 'user']

/** What a request for embeddings asks for: vectors of its inputs, which are not metered; the inputs are. */
export function ask({ body, rawBody, headers }: ModelRequest, limits: ModelLimits): ModelAsk {
  const { members, unknown } = readMembers(body, EMBEDDINGS)
  const model = modelOf(body)
  const inputs = inputsOf(members)
  return {
    isStream: false,
    wantsUsage: false,
    choices: 1,
    outputLimit: 0,
    isDefaultLimit: false,
    unknownMembers: [...unknown, ...unknownBetas(headers, OPENAI_BETAS)],
    ...tokensOf(inputs, aroundEach(members), limits),
    replyBytes: replyBytesOf(inputs.length, members),
    bodyFor: (upstreamModel) => withModel(rawBody, model, upstreamModel),
    // Inputs are all of one kind, and nothing comes between the tokens of two.
    ...countable(inputs.map(textOf), limits.contextWindow, typeof inputs[0] === 'string' ? '\n' : ''),
  }
}

function replyBytesOf(vectors: number, { dimensions, encoding_format: format }: Members): number {
  const each = Array.from({ length: vectors }, () => dimensions)
  return bytesOfVectors(each, format === 'base64' ? BYTES_OF_PACKED_NUMBER : BYTES_OF_NUMBER)
}

/** Each input has the context window for itself. */
function tokensOf(
  inputs: readonly Input[],
  around: number,
  { contextWindow }: ModelLimits,
): Pick<ModelAsk, 'inputMost' | 'inputEstimate'> {
  let inputMost = 0
  let inputEstimate = 0
  for (const input of inputs) {
    const isText = typeof input === 'string'
    const most = Math.min(contextWindow, around + (isText ? bytesOf(input) : input.length))
    inputMost += most
    inputEstimate += Math.min(most, isText ? estimateTokens(input) : input.length)
  }
  return { inputMost, inputEstimate }
}

function aroundEach(members: Members): number {
  const others = Object.entries(members).filter(([name]) => !OUTSIDE_INPUT.includes(name))
  return INPUT_OVERHEAD + (others.length === 0 ? 0 : bytesOfStructure(Object.fromEntries(others)))
}

function textOf(input: Input): string {
  return typeof input === 'string' ? input : ONE_TOKEN.repeat(input.length)
}

/** One text, several, the tokens of one, or those of several. */
function inputsOf({ input }: Members): readonly Input[] {
  if (typeof input === 'string') return [input]
  if (!Array.isArray(input) || input.length === 0)
    throw refusal('"input" must be a text, an array of texts, or tokens: an array of ids, or an array of such arrays.')
  const items: readonly unknown[] = input
  if (isTokens(items)) return [items]
  if (items.length > INPUTS_MOST)
    throw refusal(`"input" has ${items.length} inputs; the limit is ${INPUTS_MOST}. Send fewer.`)
  if (items.every((item) => typeof item === 'string') || items.every(isTokens)) return items
  throw refusal('"input" must have only texts, or only token ids: whole numbers from 0 on.')
}

function isTokens(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.length > 0 && value.every((id) => Number.isSafeInteger(id) && id >= 0)
}
