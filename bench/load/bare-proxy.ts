import { createServer, type ServerResponse } from 'node:http'
import { type Dispatcher, Pool } from 'undici'

/**
 * The least that a proxy in this language can do: node:http in front, undici's dispatch behind, and the bytes between them.
 * It knows no caller, reads no body and counts nothing.
 */
const upstream = new Pool(process.argv[2] ?? '', {
  connections: 1_024,
  allowH2: false,
  pipelining: 1,
  headersTimeout: 0,
  bodyTimeout: 0,
})

class Passing implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse

  constructor(response: ServerResponse) {
    this.#response = response
  }

  onRequestStart(): void {}

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    given: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    const { connection, 'transfer-encoding': encoding, ...headers } = given
    this.#response.writeHead(status, headers)
    if (encoding !== undefined) this.#response.flushHeaders()
  }

  onResponseData(_: Dispatcher.DispatchController, piece: Buffer): void {
    this.#response.write(piece)
  }

  onResponseEnd(): void {
    this.#response.end()
  }

  onResponseError(): void {
    this.#response.destroy()
  }
}

const server = createServer({ noDelay: true, keepAlive: true, keepAliveTimeout: 65_000 }, (request, response) => {
  const pieces: Buffer[] = []
  request.on('data', (piece: Buffer) => pieces.push(piece))
  request.on('end', () => {
    const { connection, host, 'content-length': length, ...headers } = request.headers
    const [only = Buffer.alloc(0)] = pieces
    const body = pieces.length > 1 ? Buffer.concat(pieces) : only
    upstream.dispatch({ path: request.url ?? '/', method: 'POST', headers, body }, new Passing(response))
  })
})

server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  process.stdout.write(`${JSON.stringify({ ready: true, port })}\n`)
})
