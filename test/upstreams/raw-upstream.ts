import { createServer, type Socket } from 'node:net'
import { after } from 'node:test'

/** A request as it came over the wire. */
export type Received = {
  readonly head: string
  readonly body: Buffer
  readonly socket: Socket
  /** Which connection it came by, and as which request of that; both from 0. */
  readonly connection: number
  readonly place: number
}

export type RawUpstream = {
  readonly url: string
  readonly port: number
  readonly received: readonly Received[]
  readonly connections: () => number
  readonly open: ReadonlySet<Socket>
  readonly close: () => Promise<void>
}

/** An upstream that answers with whatever bytes the test writes. It ends with the test file at the latest. */
export async function startUpstream(
  answer: (request: Received) => void,
  accepted: (socket: Socket) => void = () => {},
): Promise<RawUpstream> {
  const received: Received[] = []
  const open = new Set<Socket>()
  let connections = 0

  const server = createServer((socket) => {
    const connection = connections++
    let place = 0
    let buffered = Buffer.alloc(0)
    open.add(socket)
    socket
      .on('error', () => {})
      .on('close', () => open.delete(socket))
      .on('data', (bytes) => {
        buffered = Buffer.concat([buffered, bytes])
        for (;;) {
          const end = buffered.indexOf('\r\n\r\n')
          if (end === -1) return
          const head = buffered.toString('latin1', 0, end)
          const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0)
          if (buffered.length < end + 4 + length) return
          const request = {
            head,
            body: buffered.subarray(end + 4, end + 4 + length),
            socket,
            connection,
            place: place++,
          }
          buffered = buffered.subarray(end + 4 + length)
          received.push(request)
          answer(request)
        }
      })
    accepted(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0

  async function close(): Promise<void> {
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
  after(close)
  return { url: `http://127.0.0.1:${port}`, port, received, connections: () => connections, open, close }
}

export const okay = (body = 'fine', ...headers: string[]) =>
  ['HTTP/1.1 200 OK', `content-length: ${Buffer.byteLength(body)}`, ...headers, '', body].join('\r\n')
