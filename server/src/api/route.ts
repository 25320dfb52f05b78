import type { Readable } from 'node:stream'
import { z } from 'zod'
import type { FaultCode } from '../kernel/fault.ts'
import { inputFault } from '../wording/input-fault.ts'
import type { ApiRequest, ApiResponse } from './request.ts'

/**
 * A route of an API as a record: what its contract says, whom it lets in, what it takes and what it does. The HTTP route, validation and the
 * contract derive from it. `Access` is what the record says of the credential (of a key, a member or an operator), and `HandlerRequest` what a
 * handler is given: the request, and who sent it.
 */
export type Route<Parts, HandlerRequest, Access> = RouteDescription &
  Forms &
  Access & {
    readonly run: (parts: Parts, request: HandlerRequest) => Promise<Reply>
    /** What is done before the transaction of a change, because it can't be a part of it. */
    readonly prepare?: (parts: Parts, request: HandlerRequest) => Promise<void>
  }

/** What a request is parsed by. */
export type Forms = { readonly queryForm: z.ZodType; readonly bodyForm: z.ZodType | null }

export type RouteDescription = {
  readonly operationId: string
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** With {parameters}. */
  readonly path: `/${string}`
  readonly summary: string
  readonly description?: string
  readonly tag: string
  /** A pending definition is incomplete: what is missing is not described. */
  readonly definition?: 'pending'
  /** Beside the form of the body. */
  readonly bodyWords?: string
  readonly answer: {
    readonly status?: 200 | 201 | 204
    readonly description: string
    /** z.undefined() for an answer without a body, z.never() for a route that always refuses. */
    readonly body: z.ZodType
    /** It is one thing, and has an ETag. */
    readonly hasEtag?: true
    /** The media type of an answer that is no JSON. */
    readonly type?: string
    /** It can be asked for as a table, too. */
    readonly isTable?: true
  }
  /** How it can refuse beside what all routes of its API do. */
  readonly codes?: readonly FaultCode[]
}

/** The part of a request that a record parses. */
export type Input<Query = unknown, Body = unknown> = { readonly query: Query; readonly body: Body }

/** What every handler is given of a request, beside its input and whoever sent it. */
export type RequestHead = Pick<ApiRequest, 'id' | 'params' | 'visitor'>

/** What a handler answers. */
export type Reply<Body = unknown> = Pick<ApiResponse, 'type' | 'headers'> & {
  readonly body: Body
  /** What a repetition of a change is answered, where that is less. */
  readonly kept?: unknown
}

/** A record as it is written: handlers are typed by its own forms. */
export type RouteSpecification<
  Parts,
  HandlerRequest,
  Access,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Answer extends z.ZodType,
> = Omit<RouteDescription, 'answer'> &
  Access & {
    readonly query?: Query
    readonly body?: Body
    readonly answer: Omit<RouteDescription['answer'], 'body'> & { readonly body: Answer }
    readonly run: (
      parts: Parts,
      request: HandlerRequest & Input<z.output<Query>, z.output<Body>>,
    ) => Promise<Reply<z.input<Answer> | string | Readable>>
    readonly prepare?: (parts: Parts, request: HandlerRequest & Input<z.output<Query>, z.output<Body>>) => Promise<void>
  }

export const NOTHING = z.strictObject({})
export type Nothing = typeof NOTHING

/** Makes a record. Before its handlers run, what was sent is parsed by its forms; `requestOf` says who sent it. */
export function makeRoute<
  Parts,
  Given extends Input,
  HandlerRequest,
  Access,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Answer extends z.ZodType,
>(
  specified: RouteSpecification<Parts, HandlerRequest, Access, Query, Body, Answer>,
  requestOf: (given: Given) => HandlerRequest,
): Route<Parts, Given, Access> {
  const { query, body, run, prepare, ...described } = specified
  const parsedOf = (given: Given) => ({
    ...requestOf(given),
    query: parsed(query ?? NOTHING, given.query) as z.output<Query>,
    body: (body === undefined ? {} : parsed(body, given.body === undefined ? {} : given.body)) as z.output<Body>,
  })
  const own = {
    queryForm: query ?? NOTHING,
    bodyForm: body ?? null,
    run: async (parts: Parts, given: Given) => run(parts, parsedOf(given)),
    ...(prepare !== undefined && { prepare: async (parts: Parts, given: Given) => prepare(parts, parsedOf(given)) }),
  }
  // The rest is what the record says of itself and of its credential.
  return { ...described, ...own } as unknown as Route<Parts, Given, Access>
}

/** What a form makes of what was sent, or the refusal of it. */
export function parsed<Form extends z.ZodType>(form: Form, sent: unknown): z.output<Form> {
  const { success, data, error } = form.safeParse(sent)
  if (!success) throw inputFault(error, sent)
  return data
}
