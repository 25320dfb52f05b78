import { inspectMembers, isMembers, type Members, type Table } from '../catalogue/member-table.ts'
import { ANY_TIER, type Need, TOOL_CALLS_MOST, tierNamed } from '../catalogue/price-classes.ts'
import { type Fault, invalidRequest } from '../kernel/fault.ts'
import { REPLY_MOST_BYTES } from '../kernel/memory-budget.ts'
import type { ModelLimits, Sold } from './protocol.ts'
import { MODEL_NAME_LENGTH } from './typed-members.ts'

/** Reads the members that the protocols have in common, and refuses by name what has no price. */
export { isMembers, type Members }

/** What begins with the name of a member is about that one. */
const ABOUT = /^"([^"]{1,200})"/

export function refusal(detail: string): Fault {
  return invalidRequest(detail, ABOUT.exec(detail)?.[1])
}

export type ReadBody = {
  readonly members: Members
  /** The paths of members that our tables do not know: only a route that passes them on may be asked. */
  readonly unknown: readonly string[]
  /** What it asks for that has a price of its own, beyond plain tokens. */
  readonly needs: ReadonlySet<Need>
}

/** The members of a body by the table of its protocol, or a fault that names the first that is refused at what the model sells. */
export function readMembers(body: unknown, table: Table, sold?: Sold): ReadBody {
  if (!isMembers(body)) throw refusal('The body must be a JSON object.')
  const { unknown, refused, needs } = inspectMembers(body, table, sold?.needs)
  if (refused !== undefined) throw refusal(`"${refused.path}" ${refused.words}`)
  return { members: body, unknown, needs }
}

/** For what stands around the answer, and what it repeats of its request. */
const REPLY_ROOM_BYTES = 4 * 1_048_576

/** What a token of sound or of a picture takes in base64: 50 ms of uncompressed speech are some 3 KiB. */
const BYTES_OF_MEDIA_TOKEN = 4_096

/** So many tokens of such an answer have room in the largest reply that is read. */
const MEDIA_TOKENS_MOST = Math.floor((REPLY_MOST_BYTES - REPLY_ROOM_BYTES) / BYTES_OF_MEDIA_TOKEN)

export type Media = {
  readonly needs: ReadonlySet<Need>
  readonly isStream: boolean
  readonly choices: number
  /** The output limit that the caller has set, its name, and what it is otherwise. */
  readonly given: number | undefined
  readonly limitName: string
  readonly outputCap: number
  /** Where to ask for text alone. */
  readonly modalities: string
}

/**
 * The output limit, and what answers that are no text alone take of memory. They come whole: nobody could count what came of a stream
 * that broke, or of a reply that is too large to be read.
 */
export function outputOf(media: Media): { readonly outputLimit: number; readonly replyBytes?: number } {
  const { needs, isStream, choices, given, limitName, outputCap, modalities } = media
  if (!needs.has('output_audio') && !needs.has('output_image')) return { outputLimit: given ?? outputCap }
  if (isStream)
    throw refusal(`Only text can be streamed here. Ask without streaming, or for text alone in "${modalities}".`)
  const most = Math.floor(MEDIA_TOKENS_MOST / choices)
  if (given !== undefined && given > most)
    throw refusal(
      `"${limitName}" must be at most ${most} for ${choices === 1 ? 'an answer' : `${choices} answers`} with audio or images. Lower it, or ask for text alone in "${modalities}".`,
    )
  const outputLimit = given ?? Math.min(outputCap, most)
  return { outputLimit, replyBytes: outputLimit * choices * BYTES_OF_MEDIA_TOKEN }
}

const EACH_HAS_A_PRICE = `each call of a tool that the provider runs has a price. Set the maximum number of calls, from 1 to ${TOOL_CALLS_MOST}.`

/** The most calls of tools that an upstream runs, as a request or the model's price says it. */
export function callsIn(value: unknown, name: string): number {
  if (!isGiven(value)) throw refusal(`"${name}" is required: ${EACH_HAS_A_PRICE}`)
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= TOOL_CALLS_MOST) return value
  throw refusal(`"${name}" must be a whole number from 1 to ${TOOL_CALLS_MOST}.`)
}

/** The service tier that a request names, by its name here. Where it names none, the upstream chooses. */
export function tierIn(value: unknown): string {
  return typeof value === 'string' ? tierNamed(value) : ANY_TIER
}

/** What a caller is told of members that no route of the model passes on. */
export function unknownRefusal([first = '', ...others]: readonly string[]): Fault {
  const more = others.length === 0 ? '' : ` (also ${others.map((one) => `"${one}"`).join(', ')})`
  return invalidRequest(
    `Unknown parameter "${first}"${more}. Remove it, or ask the operator to allow unknown parameters on this route.`,
    first,
  )
}

export function modelOf(body: unknown): string {
  const model = isMembers(body) ? body.model : undefined
  if (typeof model !== 'string' || model === '' || model.length > MODEL_NAME_LENGTH) {
    throw refusal(
      isGiven(model) ? `"model" must be a name of 1 to ${MODEL_NAME_LENGTH} characters.` : '"model" is required.',
    )
  }
  return model
}

export function messagesOf({ messages }: Members): readonly unknown[] {
  if (!isGiven(messages)) throw refusal('"messages" is required.')
  if (!Array.isArray(messages) || messages.length === 0)
    throw refusal('"messages" must be an array with at least one message.')
  return messages
}

export function isStreamed({ stream }: Members): boolean {
  if (typeof stream === 'boolean') return stream
  if (isGiven(stream)) throw refusal('"stream" must be true or false.')
  return false
}

export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** The items of a member that is a list, where it is given. */
export function listOf(value: unknown, name: string): readonly unknown[] {
  if (!isGiven(value)) return []
  if (!Array.isArray(value)) throw refusal(`"${name}" must be an array.`)
  return value
}

/** An output limit, or undefined where none is given. It is never shrunk: the caller is told what the model has. */
export function outputLimitOf(members: Members, name: string, limits: ModelLimits): number | undefined {
  const { outputMost, outputAtMost = outputMost } = limits
  const limit = members[name]
  if (!isGiven(limit)) return undefined
  if (typeof limit !== 'number' || !Number.isSafeInteger(limit) || limit < 1) {
    throw refusal(`"${name}" must be a whole number of at least 1.`)
  }
  if (limit > outputMost)
    throw refusal(`"${name}" is ${limit}; the limit of this model is ${outputMost} tokens. Lower it.`)
  return Math.min(limit, outputAtMost)
}

/** What an answer may have where the caller names no limit. */
export function outputCapOf({ outputCap, outputAtMost = outputCap }: ModelLimits): number {
  return Math.min(outputCap, outputAtMost)
}
