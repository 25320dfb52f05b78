import type { Readable } from 'node:stream'
import { z } from 'zod'
import { inputFault } from '../gateway/input-fault.ts'
import type { JsonReply } from '../http/json-routes.ts'
import type { Place } from '../identity/people/place.ts'
import type { Visitor } from '../identity/people/visitor.ts'
import type { FaultCode } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Deed } from '../kernel/role.ts'
import type { Transactions } from '../storage/transaction.ts'
import type { Member } from './authenticate.ts'
import type { AccountParts } from './parts.ts'

/**
 * A route of the account API as a record: what the document says of it, whom it lets in and what it does. Routes, validation, the document and
 * the table of roles derive from it.
 */
export type AccountRoute = Described & {
  /** What the member's role has to allow in the workspace of the path; a word for those that are in no workspace. */
  readonly need: Need
  readonly queryForm: z.ZodType
  readonly bodyForm: z.ZodType | null
  readonly run: (parts: AccountParts, given: Given) => Promise<Told>
  /** What is done before the transaction of a write, because it can't be a part of it. */
  readonly prepare?: (parts: AccountParts, given: Given) => Promise<void>
}

/** Whether it changes what was read before, as it was read. */
export function isUpdate({ method, takesMatch }: Pick<AccountRoute, 'method' | 'takesMatch'>): boolean {
  return method === 'PATCH' || takesMatch === true
}

export type Need = Deed | 'sign_in' | 'nothing'

/**
 * Which access tokens may use a route, beside people in a browser: none; those for the money that it is about; or either. What is about no money
 * of its own, but about the whole workspace, counts as live there.
 */
export type Tokens = 'never' | 'own mode' | 'both'

type Described = {
  readonly operationId: string
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below /account/v1, with {parameters}. */
  readonly path: `/${string}`
  readonly summary: string
  readonly description?: string
  readonly tag: string
  /** A pending definition is incomplete: what is missing is not described. */
  readonly definition?: 'pending'
  readonly tokens: Tokens
  /** It is about money of one mode: that which the query names, or that of the thing that it is about. */
  readonly mode?: 'named' | 'its own'
  /** An update that is no PATCH: it takes the ETag of what was read, too. */
  readonly takesMatch?: true
  /** A change that can be made while the workspace is being closed. */
  readonly whileClosing?: true
  /** It asks others than PostgreSQL, and can be no part of a transaction. */
  readonly isOutside?: true
  readonly answer: {
    readonly status?: 200 | 201
    readonly description: string
    readonly body: z.ZodType
    /** It is one thing, and has an ETag. */
    readonly hasEtag?: true
    /** Of what is no JSON. */
    readonly type?: string
    /** It can be asked for as a table, too. */
    readonly isTable?: true
  }
  /** How it can refuse beside what all do. */
  readonly codes?: readonly FaultCode[]
}

/** What a handler is given before what was asked is parsed. */
export type Given = {
  readonly id: Id
  readonly member: Member | null
  readonly place: Place | null
  readonly mode: Mode
  readonly params: Readonly<Record<string, string>>
  readonly query: unknown
  readonly body: unknown
  /** The transaction of a write; for reading where nothing is written. */
  readonly on: Transactions
  readonly visitor: Visitor
  /** Throws once whoever asked may no longer: for what goes on after the answer has begun. */
  readonly stillMay: () => Promise<void>
  /** Refuses a change of what is not as whoever asks has read it. */
  readonly requireMatch: (body: unknown) => void
}

export type Told<Body = unknown> = Pick<JsonReply, 'type'> & {
  readonly body: Body
  /** What a repetition is told, where that is less. */
  readonly kept?: unknown
}

type Asked<Query, Body> = Omit<Given, 'query' | 'body' | 'member' | 'place'> & {
  readonly member: Member
  readonly query: Query
  readonly body: Body
}
type InWorkspace<Query, Body> = Asked<Query, Body> & { readonly place: Place }

type Specified<Query extends z.ZodType, Body extends z.ZodType, Answer extends z.ZodType, A> = Omit<
  Described,
  'answer'
> & {
  readonly query?: Query
  readonly body?: Body
  readonly answer: Omit<Described['answer'], 'body'> & { readonly body: Answer }
  readonly run: (parts: AccountParts, asked: A) => Promise<Told<z.input<Answer> | string | Readable>>
  readonly prepare?: (parts: AccountParts, asked: A) => Promise<void>
}

const NOTHING = z.strictObject({})

/** A route of one workspace, for members whose role allows it. */
export function inWorkspace<
  Answer extends z.ZodType,
  Query extends z.ZodType = typeof NOTHING,
  Body extends z.ZodType = typeof NOTHING,
>(
  specified: Specified<Query, Body, Answer, InWorkspace<z.output<Query>, z.output<Body>>> & { readonly need: Deed },
): AccountRoute {
  return made(specified, specified.need, (given) => {
    const { place, member } = given
    if (place === null || member === null) throw new Error(`${specified.operationId} is in no workspace`)
    return { ...given, ...read(specified, given), place, member }
  })
}

/** A route for whoever has signed in. */
export function forAnyMember<
  Answer extends z.ZodType,
  Query extends z.ZodType = typeof NOTHING,
  Body extends z.ZodType = typeof NOTHING,
>(specified: Specified<Query, Body, Answer, Asked<z.output<Query>, z.output<Body>>>): AccountRoute {
  return made(specified, 'sign_in', (given) => {
    const { member } = given
    if (member === null) throw new Error(`${specified.operationId} is for members`)
    return { ...given, ...read(specified, given), member }
  })
}

/** A route for whoever brings what it takes. */
export function forAnybody<Answer extends z.ZodType, Body extends z.ZodType = typeof NOTHING>(
  specified: Specified<typeof NOTHING, Body, Answer, Omit<Given, 'body'> & { readonly body: z.output<Body> }>,
): AccountRoute {
  return made(specified, 'nothing', (given) => ({ ...given, body: read(specified, given).body }))
}

type Forms<Query extends z.ZodType, Body extends z.ZodType> = { readonly query?: Query; readonly body?: Body }

function made<Query extends z.ZodType, Body extends z.ZodType, Answer extends z.ZodType, A>(
  specified: Specified<Query, Body, Answer, A>,
  need: Need,
  askedOf: (given: Given) => A,
): AccountRoute {
  const { query, body, run, prepare, ...described } = specified
  return {
    ...described,
    need,
    queryForm: withMode(query ?? NOTHING, described.mode),
    bodyForm: body ?? null,
    run: async (parts, given) => run(parts, askedOf(given)),
    ...(prepare !== undefined && { prepare: async (parts, given) => prepare(parts, askedOf(given)) }),
  }
}

const modeForm = z
  .enum(['live', 'test'])
  .optional()
  .meta({ description: 'Live money or test money: live, or what the access token is for, where left out.' })

function withMode(query: z.ZodType, mode: Described['mode']): z.ZodType {
  return mode === 'named' && query instanceof z.ZodObject ? query.extend({ mode: modeForm }) : query
}

/** Parses what was asked, by the forms that the document shows. */
function read<Query extends z.ZodType, Body extends z.ZodType>(
  { query, body, mode }: Forms<Query, Body> & Pick<Described, 'mode'>,
  given: Given,
): { readonly query: z.output<Query>; readonly body: z.output<Body> } {
  const { mode: _, ...rest } = Object(given.query)
  return {
    query: parsed(query ?? NOTHING, mode === 'named' ? rest : given.query) as z.output<Query>,
    body: (body === undefined ? {} : parsed(body, given.body ?? {})) as z.output<Body>,
  }
}

function parsed(form: z.ZodType, given: unknown): unknown {
  const { success, data, error } = form.safeParse(given)
  if (!success) throw inputFault(error, given)
  return data
}

/** The mode that a query names; undefined where it names none. */
export function modeIn(query: unknown): Mode | undefined {
  const { success, data, error } = z.object({ mode: modeForm }).safeParse(query)
  if (!success) throw inputFault(error, query)
  return data.mode
}
