import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { Caller } from '../identity/caller.ts'
import type { Id } from '../kernel/ids.ts'
import { LARGE_BYTES, type Lease } from '../kernel/memory-budget.ts'
import { type Visitor, visitorOf } from '../people/visitor.ts'
import type { Answer } from '../upstreams/adapters/adapter.ts'
import { exchangeOf } from '../wire/exchange.ts'
import { sendWhole } from '../wire/send-whole.ts'
import { callerOf } from './caller.ts'
import type { Family, ListenerState } from './families.ts'
import { keepBytes } from './keep-bytes.ts'
import { memoryOf } from './memory-of.ts'

/** A request of an agent, without anything of the framework. */
export type AgentRequest = {
  readonly id: Id
  readonly caller: Caller
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly visitor: Visitor
  /** Where the request came to, as its caller has it. */
  readonly host: string
  readonly rawBody: Buffer | null
  /** What the request holds of the process's memory. */
  readonly memory: Lease
  /** Whether nobody is there any more to hear the answer. */
  readonly hasLeft: () => boolean
  /** Who calls, as it is known now. Throws the fault that refuses it. */
  readonly callerNow: () => Promise<Caller>
  /** Whether nothing further begins in this process. */
  readonly isDraining: () => boolean
}

export type AgentRoutes = {
  /** Below the listener's origin. */
  readonly path: string
  readonly answer: (request: AgentRequest) => Promise<Answer>
  /** What anybody may read there, by its path: how to get a credential. */
  readonly documents: Readonly<Record<string, (host: string) => unknown>>
}

/** Every method is asked for its credential first: clients find out by any of them how to sign in. */
const METHODS = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT']

/** The tools at mcp_url, and what anybody may read beside them. */
export function agentFamilies({ path, answer, documents }: AgentRoutes, bodyBytes: number): readonly Family[] {
  return [
    toolsFamily(path, answer, Math.min(LARGE_BYTES, bodyBytes)),
    ...Object.entries(documents).map(([place, document]) => documentFamily(place, document)),
  ]
}

function toolsFamily(path: string, answer: AgentRoutes['answer'], bodyBytes: number): Family {
  return {
    name: 'agent',
    prefix: path,
    dialect: 'problem',
    bodyBytes,
    register(scope, listener) {
      keepBytes(scope, '*')
      scope.route({
        method: METHODS,
        url: '',
        config: { writesId: true },
        async handler(request, reply) {
          const memory = memoryOf(request)
          // A call goes on when its caller has left.
          memory.keep()
          try {
            sendWhole(reply, await answer(requestOf(request, memory, listener)))
            return reply
          } finally {
            memory.release()
          }
        },
      })
    },
  }
}

function documentFamily(place: string, document: (host: string) => unknown): Family {
  return {
    name: 'agent_metadata',
    prefix: place,
    dialect: 'problem',
    register(scope) {
      scope.get('', { config: { access: 'public' }, exposeHeadRoute: true }, async (request, reply) => {
        reply.header('access-control-allow-origin', '*').header('cache-control', 'public, max-age=300')
        return document(request.headers.host ?? '')
      })
    },
  }
}

function requestOf(request: FastifyRequest, memory: Lease, listener: ListenerState): AgentRequest {
  const { id, method, headers, address, rawBody, raw } = request
  return {
    id,
    caller: callerOf(request),
    method,
    headers,
    visitor: visitorOf(address, headers['user-agent']),
    host: headers.host ?? '',
    rawBody,
    memory,
    hasLeft: () => exchangeOf(raw)?.response.closed ?? true,
    callerNow: () => listener.callerNow(request),
    isDraining: listener.isDraining,
  }
}
