import { createMcpHandler, ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server'
import type { AgentRequest } from '../http/agent-routes.ts'
import type { Answer } from '../upstreams/adapters/adapter.ts'
import { isToolName } from './tool-arguments.ts'
import { TOOLS } from './tool-list.ts'
import type { CallTool } from './tools.ts'

/** Answers everything that the protocol has, in both of its versions. */
export type AnswerMessage = (request: AgentRequest, body: unknown) => Promise<Answer>

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
  function serverFor(request: AgentRequest): Server {
    const server = new Server(serverInfo, {
      capabilities: NO_CAPABILITIES,
      instructions,
      cacheHints: { 'tools/list': TOOLS_CACHE, 'server/discover': TOOLS_CACHE },
    })
    server.setRequestHandler('tools/list', () => ({ tools: TOOLS.map((tool) => ({ ...tool })) }) as never)
    server.setRequestHandler('tools/call', async ({ params: { name, arguments: given, _meta: meta = {} } }) => {
      if (!isToolName(name))
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name.slice(0, 80)}`)
      return (await callTool(request, { name, given, meta })) as never
    })
    return server
  }

  const handler = createMcpHandler(({ authInfo }) => serverFor(requestOf(authInfo?.extra)), {
    // Nobody is told anything unasked, so that nobody has to stay.
    maxSubscriptions: 0,
    keepAliveMs: 0,
  })

  return async (request, body) => {
    const { caller, method, headers } = request
    const response = await handler.fetch(
      new Request(`http://${request.host || 'localhost'}/`, { method, headers: plainHeaders(headers) }),
      {
        // The credential itself goes no further.
        authInfo: { token: '', clientId: caller.credentialId, scopes: [], extra: { [REQUEST]: request } },
        ...(body !== undefined && { parsedBody: body }),
      },
    )
    const { connection, ...passed } = Object.fromEntries(response.headers)
    return { status: response.status, headers: passed, body: await response.text() }
  }
}

const REQUEST = 'request'

function requestOf(extra: Readonly<Record<string, unknown>> | undefined): AgentRequest {
  const request = extra?.[REQUEST]
  if (request === undefined) throw new TypeError('a message came without its request')
  // It is what was put there, a few lines above.
  return request as AgentRequest
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
