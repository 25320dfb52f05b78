import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Visitor, visitorOf } from '../people/visitor.ts'
import type { FaultDialect } from '../wire/answer.ts'
import type { Family } from './families.ts'

/** What is asked of a library that answers by itself, without anything of the framework. */
export type RawAsked = {
  readonly visitor: Visitor
  readonly method: string
  /** Path and query, as they came. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** All of it, within the family's bounds; empty where there is none. */
  readonly body: Buffer
}

/** What writes the answer. Whatever is to be refused in our own words was refused before. */
export type Respond = (response: ServerResponse) => Promise<void>

export type RawRoute = {
  readonly method: 'GET' | 'POST' | 'OPTIONS'
  readonly path: string
  /** People open it in a browser, so that its refusals are pages. */
  readonly isPage?: boolean
  readonly answer: (asked: RawAsked) => Respond | Promise<Respond>
}

type Parts = {
  readonly name: string
  /** Where they stand: of the routes, those below it. */
  readonly prefix: string
  readonly dialect: FaultDialect
  readonly bodyBytes: number
  readonly routes: readonly RawRoute[]
}

/** Routes whose answers are written by somebody else: their bodies are read here, within bounds and deadlines, and not parsed. */
export function rawFamily({ name, prefix, dialect, bodyBytes, routes }: Parts): Family {
  return {
    ...{ name, prefix, dialect, bodyBytes },
    register(scope) {
      acceptBytes(scope)
      for (const { method, path, isPage = false, answer } of routes.filter(({ path }) => path.startsWith(`${prefix}/`)))
        scope.route({
          method,
          url: path.slice(prefix.length),
          config: { access: 'public', ...(isPage && { isPage }) },
          async handler(request, reply) {
            const respond = await answer(askedBy(request))
            reply.hijack()
            await respond(reply.raw)
          },
        })
    },
  }
}

function acceptBytes(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes))
}

const NOTHING = Buffer.alloc(0)

function askedBy({ address, headers, method, url, body }: FastifyRequest): RawAsked {
  const visitor = visitorOf(address, headers['user-agent'])
  return { visitor, method, url, headers, body: Buffer.isBuffer(body) ? body : NOTHING }
}
