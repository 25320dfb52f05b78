import type { ApiRequest } from '../api/request.ts'
import { parsed } from '../api/route.ts'
import { createAnswerCaller } from '../callers/answer.ts'
import { type AgentWords, type CallerRoute, pathOf } from '../callers/route.ts'
import { CALLER_ROUTES } from '../callers/routes.ts'
import type { AgentRequest } from '../http/agent-routes.ts'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, usd } from '../kernel/money.ts'
import type { Arguments } from './call-arguments.ts'
import type { AgentParts } from './parts.ts'

/**
 * What costs nothing and is no endpoint of the catalogue: how a key looks after its tasks, its links and its money. Each is a route of base_url,
 * under an id of its own.
 */
export type FreeOperation = Omit<AgentWords, 'run'> & {
  /** The same over HTTP. */
  readonly http: string
  readonly isReadOnly: boolean
  readonly run: (request: AgentRequest, call: Call) => Promise<Answered>
}

/** What it answers, and what the task cost that it tells of. */
type Answered = { readonly json: unknown; readonly taskCost?: Nanos }

type Call = { readonly id: Id; readonly given: Arguments }

export type FreeOperations = {
  readonly all: readonly FreeOperation[]
  readonly find: (id: string) => FreeOperation | undefined
}

export function createFreeOperations(parts: AgentParts): FreeOperations {
  const answer = createAnswerCaller(parts)

  function operationOf(route: CallerRoute, words: AgentWords): FreeOperation {
    const { method, answerHeaders = [] } = route
    const path = pathOf(route, parts.names)
    return {
      ...words,
      http: `${method} ${path}`,
      isReadOnly: method === 'GET',
      async run(request, { id, given }) {
        const own = { ...route, bodyForm: null, run: handlerOf(route, words, given) }
        const { body, headers = {} } = await answer(own, request.caller, requestOf(request, id, method, path))
        if (!answerHeaders.includes('taskCost')) return { json: body }
        // Callers are told by a header what a task cost.
        const cost = headers[parts.headerNames.taskCost]
        return {
          json: { ...Object(body), cost_usd: cost ?? null },
          ...(cost !== undefined && { taskCost: usd(cost) }),
        }
      },
    }
  }

  const all = CALLER_ROUTES.flatMap((route) => (route.agents === undefined ? [] : [operationOf(route, route.agents)]))
  const byId = new Map(all.map((one) => [one.id, one]))
  return { all, find: (id) => byId.get(id) }
}

/** The handler of the route, given the arguments of an agent as HTTP would say them: they are read when the request has been counted. */
function handlerOf(route: CallerRoute, { input, run }: AgentWords, given: Arguments): CallerRoute['run'] {
  return async (parts, asked) => {
    const read = parsed(input, given)
    if (run !== undefined) return { body: await run(parts, asked, read) }
    const texts = Object.fromEntries(Object.entries(Object(read)).map(([name, value]) => [name, String(value)]))
    return route.run(parts, { ...asked, params: texts, query: texts, body: read })
  }
}

function requestOf({ headers, visitor }: AgentRequest, id: Id, method: string, path: string): ApiRequest {
  return {
    ...{ id, method, path, visitor, params: {}, query: {}, readBody: () => undefined },
    header(name) {
      // Where an agent has reached us is not where a platform can send users back to.
      const value = name === 'host' ? undefined : headers[name]
      return typeof value === 'string' ? value : undefined
    },
  }
}
