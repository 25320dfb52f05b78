import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'
import * as v2 from '@modelcontextprotocol/client'
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

/** Clients of somebody else's making, which find out from a URL how to be let in. */

/** Where a program on the person's machine waits for the answer. */
export async function startCallback() {
  const { promise, resolve } = Promise.withResolvers<URL>()
  const server = createServer(({ url = '' }, response) => {
    const back = new URL(url, 'http://127.0.0.1')
    if (back.pathname === '/callback') resolve(back)
    response.setHeader('content-type', 'text/html')
    response.end('<!doctype html><title>Back</title><h1>Back in the program</h1>')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/callback`, called: promise }
}

type Kept = {
  verifier: string
  asked: URL | undefined
  client: unknown
  tokens: v2.OAuthTokens | undefined
  discovery: v2.OAuthDiscoveryState | undefined
}

/** What a client keeps between two runs, in memory. */
export function createKeeper(redirectUrl: string) {
  const kept: Kept = { verifier: '', asked: undefined, client: undefined, tokens: undefined, discovery: undefined }
  return {
    kept,
    redirectUrl,
    clientMetadata: {
      ...{ client_name: 'Stock client', redirect_uris: [redirectUrl], token_endpoint_auth_method: 'none' },
      ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
    },
    state: () => 'a state of its own',
    clientInformation: () => kept.client as { client_id: string } | undefined,
    saveClientInformation(client: unknown) {
      kept.client = client
    },
    tokens: () => kept.tokens,
    saveTokens(tokens: v2.OAuthTokens) {
      kept.tokens = tokens
    },
    redirectToAuthorization(url: URL) {
      kept.asked = url
    },
    saveCodeVerifier(verifier: string) {
      kept.verifier = verifier
    },
    /** What the server takes no more is forgotten. */
    invalidateCredentials() {
      kept.tokens = undefined
    },
    discoveryState: () => kept.discovery,
    saveDiscoveryState(state: v2.OAuthDiscoveryState) {
      kept.discovery = state
    },
    codeVerifier: () => kept.verifier,
  }
}

export type Keeper = ReturnType<typeof createKeeper>

type ToolCall = { readonly name: string; readonly arguments: Record<string, unknown> }

/** The same steps by either SDK: a connection that may end in a refusal, and one once there is a code. */
export type Sdk = {
  readonly name: string
  readonly isRefusal: (error: unknown) => boolean
  readonly tools: (url: string, keeper: Keeper) => Promise<readonly string[]>
  readonly finish: (url: string, keeper: Keeper, back: URL) => Promise<void>
  readonly call: (url: string, keeper: Keeper, call: ToolCall) => Promise<{ readonly structuredContent?: unknown }>
}

export const INFO = { name: 'stock', version: '1.0.0' }
export const SDKS: readonly Sdk[] = [
  {
    name: '1.32',
    isRefusal: (error) => error instanceof UnauthorizedError,
    async tools(url, authProvider) {
      const client = new Client(INFO)
      await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider }) as never)
      const { tools: found } = await client.listTools()
      await client.close()
      return found.map(({ name }) => name)
    },
    async finish(url, authProvider, back) {
      const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider })
      await transport.finishAuth(back.searchParams.get('code') ?? '')
    },
    async call(url, authProvider, call) {
      const client = new Client(INFO)
      await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider }) as never)
      const answer = await client.callTool(call)
      await client.close()
      return Object(answer)
    },
  },
  {
    name: 'v2',
    isRefusal: (error) => error instanceof v2.UnauthorizedError,
    async tools(url, authProvider) {
      const client = new v2.Client(INFO)
      await client.connect(new v2.StreamableHTTPClientTransport(new URL(url), { authProvider }))
      const { tools: found } = await client.listTools()
      await client.close()
      return found.map(({ name }) => name)
    },
    async finish(url, authProvider, back) {
      const transport = new v2.StreamableHTTPClientTransport(new URL(url), { authProvider })
      await transport.finishAuth(back.searchParams)
    },
    async call(url, authProvider, call) {
      const client = new v2.Client(INFO)
      await client.connect(new v2.StreamableHTTPClientTransport(new URL(url), { authProvider }))
      const answer = await client.callTool(call)
      await client.close()
      return Object(answer)
    },
  },
]
