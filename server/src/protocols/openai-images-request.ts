import type { Need } from '../catalogue/price-classes.ts'
import { OPENAI_BETAS, unknownBetas } from './betas.ts'
import { inputOf } from './bound.ts'
import { isGiven, type Members, modelOf, readMembers, refusal } from './members.ts'
import { IMAGES, PICTURES_MOST, WORD_LENGTH } from './openai-members.ts'
import type { ModelAsk, ModelLimits, ModelRequest } from './protocol.ts'
import { withModel } from './splice-json.ts'

/** A large picture in base64, with what is said about it; or its address. */
const PICTURE_BYTES = 8 * 1_048_576
const ADDRESS_BYTES = 16_384
const PICTURES: ReadonlySet<Need> = new Set(['output_image'])
/** Members that no prompt has. */
const OUTSIDE_PROMPT = ['model', 'prompt', 'user']

/** What a request for pictures asks for. There is no member that limits their tokens: the model declares its most. */
export function ask({ body, rawBody, headers }: ModelRequest, limits: ModelLimits): ModelAsk {
  const { members, unknown } = readMembers(body, IMAGES)
  const model = modelOf(body)
  const { prompt } = members
  if (typeof prompt !== 'string' || prompt === '') throw refusal('"prompt" is required: describe the image.')
  const others = Object.fromEntries(Object.entries(members).filter(([name]) => !OUTSIDE_PROMPT.includes(name)))
  const input = { texts: [prompt], structures: [], parts: [], others, messages: 0, tools: 0, declaredTokens: 0 }
  return {
    ...inputOf(input, limits),
    isStream: false,
    wantsUsage: false,
    choices: picturesOf(members),
    replyBytes: picturesOf(members) * (members.response_format === 'url' ? ADDRESS_BYTES : PICTURE_BYTES),
    outputLimit: limits.outputMost,
    isDefaultLimit: false,
    unknownMembers: [...unknown, ...unknownBetas(headers, OPENAI_BETAS)],
    // By the token, a picture's are a class of their own.
    needs: PICTURES,
    imageKind: `${wordIn(members, 'size')}/${wordIn(members, 'quality')}`,
    bodyFor: (upstreamModel) => withModel(rawBody, model, upstreamModel),
  }
}

function picturesOf({ n }: Members): number {
  if (!isGiven(n)) return 1
  if (typeof n === 'number' && Number.isInteger(n) && n >= 1 && n <= PICTURES_MOST) return n
  throw refusal(`"n" must be a whole number from 1 to ${PICTURES_MOST}.`)
}

/** `auto` where nothing is said, which is what upstreams take it for. */
function wordIn(members: Members, name: 'size' | 'quality'): string {
  const value = members[name]
  if (!isGiven(value)) return 'auto'
  if (typeof value === 'string' && value !== '' && value.length <= WORD_LENGTH) return value
  throw refusal(`"${name}" must be a text of 1 to ${WORD_LENGTH} characters.`)
}
