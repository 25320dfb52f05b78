import { inspectMembers, isMembers, type Members, type Table } from '../catalogue/member-table.ts'
import { Fault } from '../kernel/fault.ts'
import type { ModelLimits } from './protocol.ts'
import { MODEL_NAME_LENGTH } from './typed-members.ts'

/** Reads the members that the protocols have in common, and refuses by name what has no price. */
export { isMembers, type Members }

export function refusal(detail: string): Fault {
  return new Fault('invalid_request', { detail })
}

export type ReadBody = {
  readonly members: Members
  /** The paths of members that our tables do not know: only a route that passes them on may be asked. */
  readonly unknown: readonly string[]
}

/** The members of a body by the table of its protocol, or a fault that names the first that is refused. */
export function readMembers(body: unknown, table: Table): ReadBody {
  if (!isMembers(body)) throw refusal('The body must be a JSON object.')
  const { unknown, refused } = inspectMembers(body, table)
  if (refused !== undefined) throw refusal(`"${refused.path}" ${refused.words}`)
  return { members: body, unknown }
}

/** What a caller is told of members that no route of the model passes on. */
export function unknownRefusal([first = '', ...others]: readonly string[]): Fault {
  const more = others.length === 0 ? '' : ` (also ${others.map((one) => `"${one}"`).join(', ')})`
  return refusal(
    `Unknown parameter "${first}"${more}. Remove it, or ask the operator to allow unknown parameters on this route.`,
  )
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
