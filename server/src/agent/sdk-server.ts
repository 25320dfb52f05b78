import { AsyncLocalStorage } from 'node:async_hooks'
import { createMcpHandler, ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server'
import type { AgentRequest } from '../http/agent-routes.ts'
import type { Answer } from '../upstreams/adapters/adapter.ts'
import { CAPABILITIES, elicitationError, opensPages, saidToOpenPages, sessionOf } from './ask-person.ts'
import { isToolName } from './tool-arguments.ts'
import { TOOLS } from './tool-list.ts'
import { isInputRequired } from './tool-result.ts'
import type { CallTool } from './tools.ts'

/** Answers everything that the protocol has, in both of its versions. */
export type AnswerMessage = (request: AgentRequest, body: unknown) => Promise<Answered>

export type Answered = {
  readonly answer: Answer
  /** Whether a tool was called: what became of it has been told by the tool. */
  readonly isCalled: boolean
  /** What the library itself says of a refusal or a failure. */
  readonly cause: Error | undefined
}

/** What is known of a message while the library has it. */
type Exchange = { readonly request: AgentRequest; isCalled: boolean; cause: Error | undefined }

type Parts = {
  readonly callTool: CallTool
  readonly serverInfo: { readonly name: string; readonly title: string; readonly version: string }
  readonly instructions: string
}

const NO_CAPABILITIES = { tools: {} }
/** What the tools are does not change while a process runs, and is the same for all. */
export const TOOLS_CACHE = { ttlMs: 300_000, cacheScope: 'public' } as const

/**
 * The protocol as its own library speaks it. A server is made for each request and belongs to it alone: one that two clients shared
 * would answer one with what the other asked.
 */
export function createSdkServer({ callTool, serverInfo, instructions }: Parts): AnswerMessage {
  // The library tells of errors without saying in which message.
  const current = new AsyncLocalStorage<Exchange>()

  function serverFor(exchange: Exchange): Server {
    const server = new Server(serverInfo, {
      capabilities: NO_CAPABILITIES,
      instructions,
      cacheHints: { 'tools/list': TOOLS_CACHE, 'server/discover': TOOLS_CACHE },
    })
    server.setRequestHandler('tools/list', () => ({ tools: TOOLS.map((tool) => ({ ...tool })) }) as never)
    server.setRequestHandler(
      'tools/call',
      async ({ params: { name, arguments: given, _meta: meta = {} } }, context) => {
        if (!isToolName(name))
          throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name.slice(0, 80)}`)
        exchange.isCalled = true
        const { requestState, inputResponses: responses, envelope } = context.mcpReq
        const isModern = envelope !== undefined
        const opens = isModern
          ? opensPages(new Map(Object.entries(envelope)).get(CAPABILITIES))
          : saidToOpenPages(exchange.request.headers)
        const asking = opens ? { state: requestState(), responses } : null
        const result = await callTool(exchange.request, { name, given, meta, asking })
        if (!isModern && isInputRequired(result)) {
          const { code, message, data } = elicitationError(result)
          throw new ProtocolError(code, message, data)
        }
        return result as never
      },
    )
    return server
  }

  const handler = createMcpHandler(({ authInfo }) => serverFor(exchangeIn(authInfo?.extra)), {
    onerror(error) {
      const exchange = current.getStore()
      if (exchange !== undefined) exchange.cause ??= error
    },
    // Nobody is told anything unasked, so that nobody has to stay.
    maxSubscriptions: 0,
    keepAliveMs: 0,
  })

  return async (request, body) => {
    const { caller, method, headers } = request
    const exchange: Exchange = { request, isCalled: false, cause: undefined }
    const answer = await current.run(exchange, async () => {
      const response = await handler.fetch(
        new Request(`http://${request.host || 'localhost'}/`, { method, headers: plainHeaders(headers) }),
        {
          // The credential itself goes no further.
          authInfo: { token: '', clientId: caller.credentialId, scopes: [], extra: { [EXCHANGE]: exchange } },
          ...(body !== undefined && { parsedBody: body }),
        },
      )
      const { connection, ...passed } = { ...Object.fromEntries(response.headers), ...sessionOf(body) }
      return { status: response.status, headers: passed, body: await response.text() }
    })
    return { answer, isCalled: exchange.isCalled, cause: exchange.cause }
  }
}

const EXCHANGE = 'exchange'

function exchangeIn(extra: Readonly<Record<string, unknown>> | undefined): Exchange {
  const exchange = extra?.[EXCHANGE]
  if (exchange === undefined) throw new TypeError('a message came without its request')
  // It is what was put there, a few lines above.
  return exchange as Exchange
}

const PASSED_ON = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name']

function plainHeaders(headers: AgentRequest['headers']): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const name of PASSED_ON) {
    const value = headers[name]
    if (typeof value === 'string') passed[name] = value
  }
  return passed
}
