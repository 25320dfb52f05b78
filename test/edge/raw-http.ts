import { connect, type Socket } from 'node:net'

/** One response as it stood on the wire. */
export type RawResponse = {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

export type Conversation = {
  readonly responses: readonly RawResponse[]
  /** What came after the last whole response. */
  readonly rest: string
  readonly closed: boolean
  readonly durationMs: number
}

type Options = {
  /** How long to listen after the last byte, where the other end does not close. */
  readonly quietMs?: number
  /** Silence is the end only after so many responses: until then somebody is slow. */
  readonly expected?: number
  readonly deadlineMs?: number
  /** How long to wait between two pieces. */
  readonly gapMs?: number
}

/** Sends bytes over a connection of their own, in one piece or several, and listens to all that comes back. */
export async function converse(
  port: number,
  pieces: string | Buffer | readonly (string | Buffer)[],
  { quietMs = 300, expected = 1, deadlineMs = 60_000, gapMs = 20 }: Options = {},
): Promise<Conversation> {
  const startedMs = performance.now()
  const socket = await open(port)
  let text = ''
  let closed = false
  const done = Promise.withResolvers<void>()
  const deadline = setTimeout(done.resolve, deadlineMs)
  let quiet: NodeJS.Timeout | undefined
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1')
    clearTimeout(quiet)
    if (readResponses(text).responses.length >= expected) quiet = setTimeout(done.resolve, quietMs)
  })
  socket.on('close', () => {
    closed = true
    done.resolve()
  })
  const list = typeof pieces === 'string' || Buffer.isBuffer(pieces) ? [pieces] : pieces
  for (const [index, piece] of list.entries()) {
    if (index > 0) await new Promise((resolve) => setTimeout(resolve, gapMs))
    if (!socket.destroyed) socket.write(typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)
  }
  await done.promise
  clearTimeout(deadline)
  clearTimeout(quiet)
  socket.destroy()
  return { ...readResponses(text), closed, durationMs: performance.now() - startedMs }
}

export async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  // A reset is one of the ways to be refused.
  socket.on('error', () => {})
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('close', () => reject(new Error('refused to connect')))
  })
  return socket
}

function readResponses(text: string): { readonly responses: RawResponse[]; readonly rest: string } {
  const responses: RawResponse[] = []
  let rest = text
  for (;;) {
    const end = rest.indexOf('\r\n\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(rest)?.[1] ?? Number.NaN)
    if (end === -1 || Number.isNaN(status)) return { responses, rest }
    const headers = new Map(
      rest
        .slice(0, end)
        .split('\r\n')
        .slice(1)
        .map((line) => {
          const colon = line.indexOf(':')
          return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
        }),
    )
    const isChunked = headers.get('transfer-encoding') === 'chunked'
    const after = rest.slice(end + 4)
    const length = isChunked ? after.indexOf('0\r\n\r\n') + 5 : Number(headers.get('content-length') ?? 0)
    responses.push({ status, headers, body: after.slice(0, length) })
    rest = after.slice(length)
  }
}
