import { z } from 'zod'
import type { ApiRequest } from '../api/request.ts'
import {
  type Input,
  makeRoute,
  type Reply,
  type RequestHead,
  type Route,
  type RouteSpecification,
} from '../api/route.ts'
import type { Names } from '../catalogue/operation.ts'
import type { ContractParameter } from '../contracts/route.ts'
import type { Caller } from '../identity/caller.ts'
import type { LINKING } from '../identity/scopes.ts'
import type { HeaderNames } from '../wording/header-names.ts'
import type { CallerParts } from './parts.ts'

/** A route of base_url by which a key looks after what is its own. It is free, and counts as a request of the key. */
export type CallerRoute = Route<CallerParts, CallerRequest & Input, KeyAccess>

/** What a handler is given of a request, beside its input. */
export type CallerRequest = RequestHead & Pick<ApiRequest, 'header'> & { readonly caller: Caller }

/** What a record says of the key, and of base_url. */
export type KeyAccess = {
  /** What a request counts as: every key may make it, but for the one that needs a scope. */
  readonly counts: 'balance' | 'usage' | 'requests' | 'models' | 'tasks' | 'links' | typeof LINKING
  /** It can be used while the workspace is being closed: tasks run on then. */
  readonly whileClosing?: true
  /** What each {parameter} of the path is. */
  readonly params?: Readonly<Record<string, string>>
  /** Headers of the request that the handler reads. */
  readonly headers?: readonly ContractParameter[]
  /** Headers of ours that its answers have, beside those of rate limits. */
  readonly answerHeaders?: readonly (keyof HeaderNames)[]
  /** The query as the contract has it, where the handler reads it by itself and refuses in words of its own. */
  readonly describedQuery?: z.ZodType
  /** Its 400 is `{ "error": "…" }`, whatever the dialect of its path. */
  readonly plainBadRequest?: true
  /** What its refusals are called in the contract; routes of one name refuse alike. */
  readonly refusesAs?: string
  readonly agents?: AgentWords
}

/** The same as an operation that agents find and use: what its tools tell of it, and its arguments. */
export type AgentWords<Arguments = unknown> = {
  readonly id: string
  readonly summary: string
  /** As operations of the catalogue have them. */
  readonly asks: string
  readonly example: Readonly<Record<string, unknown>>
  readonly category: 'video' | 'social' | 'models' | 'account'
  /** Those of the path by their names; all others are the query, or the body. */
  readonly input: z.ZodType<Arguments>
  /** Where agents are answered something else than callers. */
  readonly run?: (parts: CallerParts, asked: Pick<CallerRequest, 'caller'>, given: Arguments) => Promise<Reply['body']>
}

/** Types what an operation for agents is given by its arguments. */
export function forAgents<Arguments>(words: AgentWords<Arguments>): AgentWords {
  // It is run with what its own form has parsed, and with nothing else.
  return words as AgentWords
}

/** What no form describes passes as it was sent, and is ignored. */
const ANYTHING = z.looseObject({})

export function forKey<
  Answer extends z.ZodType,
  Query extends z.ZodType = typeof ANYTHING,
  Body extends z.ZodType = typeof ANYTHING,
>(specified: RouteSpecification<CallerParts, CallerRequest, KeyAccess, Query, Body, Answer>): CallerRoute {
  const route = makeRoute(
    { ...specified, query: specified.query ?? (ANYTHING as unknown as Query) },
    (given: CallerRequest & Input) => given,
  )
  return specified.describedQuery === undefined ? route : { ...route, queryForm: specified.describedQuery }
}

/** The path as callers use it: the names of the operator's choice are spelt, {parameters} stay. */
export function pathOf({ path }: Pick<CallerRoute, 'path'>, names: Names): string {
  return path.replaceAll(/\{(\w+)\}/g, (parameter, name: string) => names[name] ?? parameter)
}
