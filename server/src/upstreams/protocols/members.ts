import { Fault } from '../../kernel/fault.ts'
import type { ModelLimits } from './protocol.ts'

/** Reads the members that the protocols have in common, and refuses by name what has no price. */
export type Members = Readonly<Record<string, unknown>>

export const MODEL_NAME_LENGTH = 200
/** Why a member is refused that hands the call to somebody else. */
export const OTHER_MODEL = 'it has another model work for the answer, whose price this call does not have.'

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function refusal(detail: string): Fault {
  return new Fault('invalid_request', { detail })
}

const LOWER_CASE = /^[a-z0-9_]*$/

/** The members of a body, or a fault. A name in another case is none of them, but some upstreams would take it for one. */
export function membersOf(body: unknown, known: ReadonlySet<string>): Members {
  if (!isMembers(body)) throw refusal('The body must be a JSON object.')
  for (const name of Object.keys(body)) {
    if (LOWER_CASE.test(name)) continue
    const folded = name.toUpperCase().toLowerCase()
    if (folded !== name && known.has(folded)) throw refusal(`Write the member "${folded}" in lower case.`)
  }
  return body
}

export function modelOf(body: unknown): string {
  const model = isMembers(body) ? body.model : undefined
  if (typeof model !== 'string' || model === '' || model.length > MODEL_NAME_LENGTH) {
    throw refusal(`Name a model in "model", in 1 to ${MODEL_NAME_LENGTH} characters.`)
  }
  return model
}

export function messagesOf({ messages }: Members): readonly unknown[] {
  if (!Array.isArray(messages) || messages.length === 0) throw refusal('"messages" must be an array with a message.')
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
export function outputLimitOf(members: Members, name: string, { outputMost }: ModelLimits): number | undefined {
  const limit = members[name]
  if (!isGiven(limit)) return undefined
  if (typeof limit !== 'number' || !Number.isSafeInteger(limit) || limit < 1) {
    throw refusal(`"${name}" must be a whole number from 1 on.`)
  }
  if (limit > outputMost) throw refusal(`"${name}" is ${limit}; this model answers with ${outputMost} tokens at most.`)
  return limit
}

/** Refuses each member that is given, with the reason why it can't be priced. */
export function refuseMembers(members: Members, reasons: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(members)) {
    if (!Object.hasOwn(reasons, name) || !isGiven(members[name])) continue
    throw refusal(`"${name}" is not taken: ${reasons[name]}`)
  }
}

/** Refuses a value that is given and is none of those which cost nothing beyond tokens. */
export function allowOnly(members: Members, name: string, allowed: readonly string[], reason: string): void {
  const value = members[name]
  if (!isGiven(value) || allowed.some((one) => one === value)) return
  const taken = allowed.map((one) => `"${one}"`).join(' or ')
  throw refusal(`"${name}" is taken as ${taken} only: ${reason}`)
}
