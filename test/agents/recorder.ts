import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'

/** A request as an agent sent it, and what it was told. */
export type Exchange = {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly status: number
  readonly id: string
  readonly answer: string
}

export type Recorder = {
  readonly url: string
  /** In the order in which their answers ended. */
  readonly exchanges: readonly Exchange[]
  /** Hosts that somebody wanted to reach through it, as a proxy for everything else. */
  readonly strangers: readonly string[]
  readonly stop: () => Promise<void>
}

const KEEP_ALIVE_MS = 120_000

type Options = {
  /** Passes on under which name it was asked, as a server has it that is known by the recorder's own address. */
  readonly keepsHost?: boolean
}

/** Stands between an agent and the gateway, and keeps what passes. Named as an agent's proxy, it also sees whom else it asks, and lets none through. */
export async function startRecorder(gatewayUrl: string, { keepsHost = false }: Options = {}): Promise<Recorder> {
  const exchanges: Exchange[] = []
  const strangers: string[] = []
  const server = createServer((asked, answer) => {
    const host = keepsHost ? (asked.headers.host ?? '') : new URL(gatewayUrl).host
    if (asked.url?.startsWith('/')) void pass({ gatewayUrl, host }, asked, answer, (one) => exchanges.push(one))
    else {
      strangers.push(asked.url ?? '')
      answer.writeHead(502).end()
    }
  })
  server.on('connect', (asked, socket) => {
    strangers.push(asked.url ?? '')
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')
  })
  // Longer than the gateway, whose promise of how long a connection stays is passed on: nothing is sent into one that closes.
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('it listens on no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    exchanges,
    strangers,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function pass(
  { gatewayUrl, host }: { readonly gatewayUrl: string; readonly host: string },
  asked: IncomingMessage,
  answer: ServerResponse,
  record: (exchange: Exchange) => void,
): Promise<void> {
  const body = Buffer.concat(await asked.toArray())
  const { method = '', url: path = '' } = asked
  const headers = headersOf(asked)
  const sent = request(gatewayUrl + path, { method, headers: { ...asked.headers, host } })
  sent.once('error', () => answer.destroy())
  sent.once('response', async (told) => {
    answer.writeHead(told.statusCode ?? 502, told.headers)
    const pieces: Buffer[] = []
    for await (const piece of told) {
      pieces.push(piece)
      answer.write(piece)
    }
    const id = String(told.headers['x-request-id'] ?? '')
    const text = Buffer.concat(pieces).toString()
    // Before the agent can know that it has ended, and end itself.
    record({ method, path, headers, body: body.toString(), status: told.statusCode ?? 0, id, answer: text })
    answer.end()
  })
  sent.end(body)
}

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
}
