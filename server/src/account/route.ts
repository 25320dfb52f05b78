import { z } from 'zod'
import type { PeopleAccess, PersonRequest } from '../api/answer.ts'
import { makeRoute, NOTHING, type Nothing, type Route, type RouteSpecification } from '../api/route.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Permission } from '../kernel/role.ts'
import type { Place } from '../people/membership.ts'
import type { Member } from './authenticate.ts'
import type { AccountParts } from './parts.ts'

/** Where the account API is, below site_url. */
export const ACCOUNT_PREFIX = '/account/v1'

/** A route of the account API: a record for members of workspaces. The table of roles derives from these, too. */
export type AccountRoute = Route<AccountParts, Given, MemberAccess>

/** What a record says of whoever may use it. */
export type MemberAccess = PeopleAccess & {
  /** What the member's role has to allow in the workspace of the path; a word for those that are in no workspace. */
  readonly need: Need
  readonly tokens: Tokens
  /** It is about money of one mode: that which the query names, or that of the thing that it is about. */
  readonly mode?: 'named' | 'its own'
  /** A change that can be made while the workspace is being closed. */
  readonly whileClosing?: true
}

export type Need = Permission | 'sign_in' | 'nothing'

/**
 * Which access tokens may use a route, beside people in a browser: none; those for the money that it is about; or either. What is about no money
 * of its own, but about the whole workspace, counts as live there.
 */
export type Tokens = 'never' | 'own mode' | 'both'

/** What a handler is given before what was sent is parsed: the request, who sent it, and for which workspace and money. */
export type Given = PersonRequest & {
  readonly member: Member | null
  readonly place: Place | null
  readonly mode: Mode
}

type MemberRequest = Omit<PersonRequest, 'query' | 'body'> & { readonly member: Member; readonly mode: Mode }
type WorkspaceRequest = MemberRequest & { readonly place: Place }

/** Beside `need`, which the kind of the route says. */
type Access = Omit<MemberAccess, 'need'>

/** A route of one workspace, for members whose role allows it. */
export function inWorkspace<
  Answer extends z.ZodType,
  Query extends z.ZodType = Nothing,
  Body extends z.ZodType = Nothing,
>(
  specified: RouteSpecification<
    AccountParts,
    WorkspaceRequest,
    Access & { readonly need: Permission },
    Query,
    Body,
    Answer
  >,
) {
  return accountRoute(specified, specified.need, (given) => {
    const { place, member } = given
    if (place === null || member === null) throw new Error(`${specified.operationId} is in no workspace`)
    return { ...given, place, member }
  })
}

/** A route for whoever has signed in. */
export function forAnyMember<
  Answer extends z.ZodType,
  Query extends z.ZodType = Nothing,
  Body extends z.ZodType = Nothing,
>(specified: RouteSpecification<AccountParts, MemberRequest, Access, Query, Body, Answer>) {
  return accountRoute(specified, 'sign_in', (given) => {
    const { member } = given
    if (member === null) throw new Error(`${specified.operationId} is for members`)
    return { ...given, member }
  })
}

/** A route for whoever brings what it takes. */
export function forAnybody<Answer extends z.ZodType, Body extends z.ZodType = Nothing>(
  specified: RouteSpecification<AccountParts, Omit<Given, 'query' | 'body'>, Access, Nothing, Body, Answer>,
) {
  return accountRoute(specified, 'nothing', (given) => given)
}

function accountRoute<A, Query extends z.ZodType, Body extends z.ZodType, Answer extends z.ZodType>(
  specified: RouteSpecification<AccountParts, A, Access, Query, Body, Answer>,
  need: Need,
  requestOf: (given: Given) => A,
): AccountRoute {
  const query = withMode(specified.query ?? NOTHING, specified.mode) as Query
  return { ...makeRoute({ ...specified, query }, requestOf), need }
}

export const modeForm = z
  .enum(['live', 'test'])
  .optional()
  .meta({ description: 'Live money or test money: live, or what the access token is for, where left out.' })

function withMode(query: z.ZodType, mode: MemberAccess['mode']): z.ZodType {
  return mode === 'named' && query instanceof z.ZodObject ? query.extend({ mode: modeForm }) : query
}
