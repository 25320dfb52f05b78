import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

/** What a tool answered, as far as all clients agree on it. */
export type ToolAnswer = {
  readonly content: readonly { readonly type: string; readonly text?: string; readonly data?: string }[]
  readonly structuredContent: Record<string, unknown>
  readonly isError: boolean
  readonly meta: Record<string, unknown>
}

export type AgentClient = {
  readonly tools: () => Promise<readonly Record<string, unknown>[]>
  readonly call: (name: string, given?: Record<string, unknown>, meta?: Record<string, unknown>) => Promise<ToolAnswer>
  readonly close: () => Promise<void>
}

export const KINDS = ['sdk 1.32', 'sdk 2', 'sdk 2 pinned to 2026-07-28'] as const
export type Kind = (typeof KINDS)[number]

/** A client of somebody else's making, with a key. */
export async function connectAgent(kind: Kind, url: string, secret: string): Promise<AgentClient> {
  const requestInit = { headers: { authorization: `Bearer ${secret}` } }
  const info = { name: 'test', version: '1.0.0' }
  if (kind === 'sdk 1.32') {
    const client = new ClientV1(info)
    await client.connect(new TransportV1(new URL(url), { requestInit }))
    return facade(client)
  }
  const client = new ClientV2(info, kind === 'sdk 2' ? {} : { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(new TransportV2(new URL(url), { requestInit }))
  return facade(client)
}

type Speaks = {
  listTools(): Promise<{ tools: unknown[] }>
  callTool(params: {
    name: string
    arguments?: Record<string, unknown>
    _meta?: Record<string, unknown>
  }): Promise<unknown>
  close(): Promise<void>
}

function facade(client: Speaks): AgentClient {
  return {
    tools: async () => (await client.listTools()).tools.map((tool) => Object(tool)),
    async call(name, given = {}, meta) {
      const { content, structuredContent, isError, _meta } = Object(
        await client.callTool({ name, arguments: given, ...(meta && { _meta: meta }) }),
      )
      return { content, structuredContent, isError: isError === true, meta: _meta ?? {} }
    },
    close: () => client.close(),
  }
}
