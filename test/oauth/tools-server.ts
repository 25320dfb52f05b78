import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { after } from 'node:test'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { createResources, metadataPathOf, protectedResourceMetadata } from '../../server/src/authorization/resources.ts'
import { createOauthClient, OPERATOR_SECRET } from './client.ts'

export type ToolsServer = {
  readonly url: string
  /** Says who issues tokens for it. */
  readonly trust: (siteUrl: string) => void
  /** What it was asked, with the status that it answered with. */
  readonly answered: string[]
}

/** A server of tools that takes the tokens of an authorization server, as the agents' listener will. It ends with the test file. */
export async function startToolsServer(): Promise<ToolsServer> {
  const answered: string[] = []
  let siteUrl = ''
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'tools', version: '1.0.0' })
    server.registerTool(
      'list_categories',
      { description: 'Lists categories', inputSchema: z.object({}) },
      async () => ({
        content: [{ type: 'text', text: 'models' }],
      }),
    )
    return server
  })

  async function isGood(request: IncomingMessage): Promise<boolean> {
    const [, token] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '') ?? []
    if (token === undefined) return false
    const authorization = `Basic ${Buffer.from(`operator:${OPERATOR_SECRET}`).toString('base64')}`
    const { json } = await createOauthClient({ url: siteUrl }).post('/oauth/introspect', { token }, { authorization })
    return json.active === true && json.aud === url && String(json.scope).split(' ').includes('agent')
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [resource] = createResources({ siteUrl, baseUrl: undefined, mcpUrl: url }).all
    const metadataUrl = new URL(metadataPathOf(url), url).href
    if (resource !== undefined && request.url === metadataPathOf(url)) {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(protectedResourceMetadata(resource, siteUrl)))
    } else if (request.url !== '/mcp') response.writeHead(404).end()
    else if (!(await isGood(request)))
      response
        .writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${metadataUrl}", scope="agent"` })
        .end('{"error":"invalid_token"}')
    else await send(await handler.fetch(await asRequest(request, url)), response)
    answered.push(`${request.method} ${request.url} ${response.statusCode}`)
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error) => response.destroy(error))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}/mcp`
  return { url, answered, trust: (given) => (siteUrl = given) }
}

async function asRequest(request: IncomingMessage, url: string): Promise<Request> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece)
  const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)])
  const { method = 'GET' } = request
  return new Request(url, { method, headers, ...(method === 'POST' && { body: Buffer.concat(pieces) }) })
}

async function send(answer: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  if (answer.body === null) response.end()
  else Readable.fromWeb(answer.body).pipe(response)
}
