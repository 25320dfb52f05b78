import type { ServerResponse } from 'node:http'
import type { Header } from './upstream.ts'

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: readonly Header[] = [],
): void {
  const json = JSON.stringify(body)
  const length = String(Buffer.byteLength(json))
  response.writeHead(status, ['content-type', 'application/json', 'content-length', length, ...headers.flat()])
  response.end(json)
}
