import type { FastifyRequest } from 'fastify'
import { type Visitor, visitorOf } from '../identity/people/visitor.ts'
import type { Family } from './families.ts'

/** What a route of an API of people is asked, without anything of the framework. */
export type JsonAsked = {
  /** The request's id. */
  readonly id: string
  readonly visitor: Visitor
  readonly method: string
  /** The path alone, as it came. */
  readonly path: string
  readonly params: Readonly<Record<string, string>>
  readonly query: unknown
  /** As it was parsed; undefined where there is none. */
  readonly body: unknown
  /** By its name in lower case. What is sent twice is joined, and believed of nobody. */
  readonly header: (name: string) => string | undefined
}

export type JsonReply = {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON; a text or a stream of another type as it is; nothing where left out. */
  readonly body?: unknown
  readonly type?: string
}

export type JsonRoute = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below the family's prefix; `:name` is a parameter. */
  readonly path: string
  readonly answer: (asked: JsonAsked) => Promise<JsonReply>
}

type Parts = {
  readonly name: string
  readonly prefix: string
  readonly bodyBytes: number
  readonly routes: readonly JsonRoute[]
}

/** Routes that answer JSON, and find out by themselves who asks. What they refuse is a problem of RFC 9457. */
export function jsonFamily({ name, prefix, bodyBytes, routes }: Parts): Family {
  return {
    ...{ name, prefix, bodyBytes, dialect: 'problem' },
    register(scope) {
      for (const { method, path, answer } of routes)
        scope.route({
          method,
          url: path,
          config: { access: 'public' },
          async handler(request, reply) {
            const { status, headers = {}, body, type } = await answer(askedBy(request))
            // What is told to one member is nobody else's, whatever stands in between.
            reply.code(status).headers({ 'cache-control': 'no-store', ...headers })
            if (type !== undefined) reply.type(type)
            return reply.send(body)
          },
        })
    },
  }
}

function askedBy(request: FastifyRequest): JsonAsked {
  const { address, headers, method, params, query, body } = request
  return {
    id: request.id,
    visitor: visitorOf(address, headers['user-agent']),
    method,
    path: request.url.split('?', 1)[0] ?? '',
    params: Object.fromEntries(Object.entries(Object(params)).map(([name, value]) => [name, String(value)])),
    query,
    body,
    header(name) {
      const value = headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    },
  }
}
