import type { FastifyRequest } from 'fastify'
import type { ApiRequest, ApiResponse } from '../api/request.ts'
import { visitorOf } from '../people/visitor.ts'
import type { Family } from './families.ts'

export type JsonRoute = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below the family's prefix, with {parameters}. */
  readonly path: string
  readonly answer: (request: ApiRequest) => Promise<ApiResponse>
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
          url: path.replaceAll(/\{(\w+)\}/g, ':$1'),
          config: { access: 'public' },
          async handler(request, reply) {
            const { status, headers = {}, body, type } = await answer(apiRequestOf(request))
            // What is told to one member is nobody else's, whatever stands in between.
            reply.code(status).headers({ 'cache-control': 'no-store', ...headers })
            if (type !== undefined) reply.type(type)
            return reply.send(body)
          },
        })
    },
  }
}

/** A request without anything of the framework. */
export function apiRequestOf(request: FastifyRequest): ApiRequest {
  const { address, headers, method, params, query } = request
  return {
    id: request.id,
    visitor: visitorOf(address, headers['user-agent']),
    method,
    path: request.url.split('?', 1)[0] ?? '',
    params: Object.fromEntries(Object.entries(Object(params)).map(([name, value]) => [name, String(value)])),
    query,
    readBody: () => request.body ?? undefined,
    header(name) {
      const value = headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    },
  }
}
