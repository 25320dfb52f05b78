import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A way to a server on which somebody stops reading in the middle, and goes on when told to. */
export type PausingWay = {
  readonly url: string
  /** What was read of the server's answers so far. */
  readonly bytesRead: () => number
  readonly isPaused: () => boolean
  readonly resume: () => void
  readonly close: () => void
}

export async function startPausingWay(to: string, pauseAtByte: number): Promise<PausingWay> {
  const { hostname, port } = new URL(to)
  const sockets: Socket[] = []
  let bytesRead = 0
  let paused: Socket | undefined
  let hasResumed = false
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    sockets.push(near, far)
    near.pipe(far)
    far.on('data', (piece: Buffer) => {
      bytesRead += piece.length
      near.write(piece)
      if (bytesRead < pauseAtByte || hasResumed) return
      paused = far.pause()
    })
    far.on('close', () => near.end())
    for (const socket of [near, far]) socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bytesRead: () => bytesRead,
    isPaused: () => paused?.isPaused() === true,
    resume() {
      hasResumed = true
      paused?.resume()
    },
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Bytes that wait in the kernel, on either end of the connections to a server on this machine. */
export function bytesInKernel(url: string): number {
  const place = `:${Number(new URL(url).port).toString(16).toUpperCase().padStart(4, '0')}`
  const lines = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n').slice(1)
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local = '', remote = '', state]) => state === ESTABLISHED && `${local} ${remote}`.includes(place))
    .flatMap(([, , , , queues = '']) => queues.split(':').map((bytes) => Number.parseInt(bytes, 16)))
    .reduce((sum, bytes) => sum + bytes, 0)
}

const ESTABLISHED = '01'
