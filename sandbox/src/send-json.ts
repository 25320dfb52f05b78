import type { ServerResponse } from 'node:http'

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const json = JSON.stringify(body)
  response.writeHead(status, ['content-type', 'application/json', 'content-length', String(Buffer.byteLength(json))])
  response.end(json)
}
