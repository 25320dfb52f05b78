import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'

/** A delivery that has come and was not answered yet. */
export type Arrival = {
  readonly id: string
  readonly url: string
  readonly worker: number
  readonly body: string
  readonly answer: ServerResponse
}

/** Somebody who is told things over HTTP. It ends with the test file. */
export async function startReceiver(receive: (arrival: Arrival) => void) {
  const open = new Set<Arrival>()
  async function take(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece)
    const arrival: Arrival = {
      id: String(request.headers['message-id']),
      url: request.url ?? '',
      worker: Number(request.headers.worker),
      body: String(Buffer.concat(pieces)),
      answer,
    }
    open.add(arrival)
    answer.once('close', () => open.delete(arrival))
    receive(arrival)
  }
  // Who dies in the middle of a request has told nothing.
  const server = createServer((request, answer) => void take(request, answer).catch(() => answer.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, open }
}
