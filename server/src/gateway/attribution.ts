import { isUtf8 } from 'node:buffer'
import { type Ceiling, ceilingsOfCall } from '../budgets/account-budgets.ts'
import { endUserOf, type FindEndUser, type FoundEndUser } from '../budgets/end-users.ts'
import { byName, TAGS_LIMIT, type Tag, tagsIn } from '../budgets/tags.ts'
import type { Caller } from '../identity/caller.ts'
import { type Fault, invalidRequest, unavailable } from '../kernel/fault.ts'
import { END_USER_MOST, endUserNamed, type NamedEndUser } from '../protocols/end-user.ts'
import type { Attributed } from './ceilings.ts'

/** What a request says of whose spend it is: in headers, and for whom in its body. */
type Said = {
  readonly caller: Pick<Caller, 'accountId' | 'tags'>
  /** The header that names the end user, which beats the body. */
  readonly endUser?: string | undefined
  /** The header of tags, such as `team=search,run=42`. */
  readonly tags?: string | undefined
}

/** What the request's body says. */
type Read = { readonly model?: string | undefined; readonly endUser?: NamedEndUser | undefined }

/** Whose spend a call is; undefined where nothing is said. At once, but for an end user whom this process meets for the first time. */
export type Attribute = (said: Said, read: Read) => Attributed | undefined | Promise<Attributed>

const NO_TAGS: readonly Tag[] = []

export function createAttribute({ findEndUser }: { readonly findEndUser: FindEndUser }): Attribute {
  async function withEndUser(attribution: Attributed, finding: Promise<FoundEndUser>): Promise<Attributed> {
    const endUser = await finding.catch((cause: unknown) => {
      throw unavailable(cause)
    })
    return { ...attribution, endUser }
  }

  return ({ caller, endUser: header, tags: given }, { model, endUser: inBody }) => {
    const tags = tagsOf(caller.tags, given)
    const named = header === undefined ? bounded(inBody) : namedIn(header)
    if (named === undefined && tags.length === 0) return model === undefined ? undefined : { ...NOBODY, model }
    const attribution = { model: model ?? null, endUser: null, tags }
    if (named === undefined) return attribution
    const endUser = findEndUser(caller.accountId, named)
    return endUser instanceof Promise ? withEndUser(attribution, endUser) : { ...attribution, endUser }
  }
}

const NOBODY = { endUser: null, tags: NO_TAGS }

/** What a key fixes beats what the request says. */
function tagsOf(fixed: readonly Tag[], header: string | undefined): readonly Tag[] {
  if (header === undefined) return fixed
  const given = read(header).filter(({ name }) => !fixed.some((tag) => tag.name === name))
  if (fixed.length + given.length > TAGS_LIMIT)
    throw invalid(
      `a call has at most ${TAGS_LIMIT} tags; with those of the key these are ${fixed.length + given.length}`,
    )
  return [...fixed, ...given].sort(byName)
}

function read(header: string): readonly Tag[] {
  try {
    return tagsIn(header.split(',').map((text) => text.trim()))
  } catch (error) {
    throw error instanceof RangeError ? invalid(error.message) : error
  }
}

function namedIn(header: string): NamedEndUser {
  const text = decoded(header).trim()
  if (text === '' || text.length > END_USER_MOST)
    throw invalidRequest(`The end user header must have 1 to ${END_USER_MOST} characters. Correct it, or leave it out.`)
  return endUserNamed(text)
}

/** Node reads each byte of a header as a character. What is UTF-8 is read as that, so that a name is the same as in a body. */
function decoded(header: string): string {
  const bytes = Buffer.from(header, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : header
}

function bounded(inBody: NamedEndUser | undefined): NamedEndUser | undefined {
  if (inBody !== undefined && inBody.text.length > END_USER_MOST)
    throw invalidRequest(
      `The end user in the body has ${inBody.text.length} characters; the limit is ${END_USER_MOST}. Shorten it, or leave it out.`,
    )
  return inBody
}

function invalid(what: string): Fault {
  const sentence = `${what[0]?.toUpperCase()}${what.slice(1)}`
  return invalidRequest(`Invalid tags header. ${sentence}. Send name=value pairs, separated by commas.`)
}

/** What calls of a caller are held against that say the same of themselves, for whoever only looks: nobody is noted as seen for it. */
export function namedCeilings(caller: Caller, { endUser, tags }: Omit<Said, 'caller'>): readonly Ceiling[] {
  const { accountId, ceilings, budgetsOfCalls } = caller
  const given = tagsOf(caller.tags, tags)
  const named = endUser === undefined ? null : endUserOf(accountId, namedIn(endUser))
  if (budgetsOfCalls === null) return ceilings
  return [...ceilings, ...ceilingsOfCall(budgetsOfCalls, { endUser: named, tags: given })]
}
