import { inputOf } from './bound.ts'
import { allowOnly, isGiven, type Members, membersOf, modelOf, refusal, refuseMembers } from './members.ts'
import type { ModelAsk, ModelLimits, ModelRequest } from './protocol.ts'
import { withModel } from './splice-json.ts'

const PICTURES_MOST = 10
const WORD_LENGTH = 32
const IN_PARTS = 'pictures come whole here; each part of one has a price of its own.'
const REFUSED: Readonly<Record<string, string>> = { partial_images: IN_PARTS }

/** All that is taken. Any other member may make a picture dearer, in a way that size and quality do not tell. */
const TAKEN = [
  ...['model', 'prompt', 'n', 'size', 'quality', 'style', 'background', 'moderation', 'user', 'stream'],
  ...['output_format', 'output_compression', 'response_format'],
]
const KNOWN = new Set([...TAKEN, ...Object.keys(REFUSED)])
/** Members that no prompt has. */
const OUTSIDE_PROMPT = ['model', 'prompt', 'user']

/** What a request for pictures asks for. There is no member that limits their tokens: the model declares its most. */
export function ask({ body, rawBody }: ModelRequest, limits: ModelLimits): ModelAsk {
  const members = membersOf(body, KNOWN)
  const model = modelOf(body)
  refuseUnpriced(members)
  allowOnly(members, 'response_format', ['url', 'b64_json'], 'other forms do not say how many they are.')
  const { prompt } = members
  if (typeof prompt !== 'string' || prompt === '') throw refusal('Describe the picture in "prompt".')
  const others = Object.fromEntries(Object.entries(members).filter(([name]) => !OUTSIDE_PROMPT.includes(name)))
  const input = { texts: [prompt], structures: [], parts: [], others, messages: 0, tools: 0, declaredTokens: 0 }
  return {
    ...inputOf(input, limits),
    isStream: false,
    wantsUsage: false,
    choices: picturesOf(members),
    outputLimit: limits.outputMost,
    isDefaultLimit: false,
    imageKind: `${wordIn(members, 'size')}/${wordIn(members, 'quality')}`,
    bodyFor: (upstreamModel) => withModel(rawBody, model, upstreamModel),
  }
}

function refuseUnpriced(members: Members): void {
  refuseMembers(members, REFUSED)
  if (isGiven(members.stream) && members.stream !== false) throw refusal(`"stream" is not taken: ${IN_PARTS}`)
  for (const name of Object.keys(members)) {
    if (!KNOWN.has(name))
      throw refusal(`"${name.slice(0, WORD_LENGTH)}" is not taken: it may change what a picture costs.`)
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
