import { createServer, type Server, Socket } from 'node:net'
import { type Observation, ProxiedConnection, type Way } from './proxied-connection.ts'
import { ArmedInterruption, type Cut, type Interruption } from './tcp-interruption.ts'

export type { Cut, Direction, Interruption, Place } from './tcp-interruption.ts'

/**
 * A way between a program under test and a server, on loopback, that can be interrupted at a chosen byte or message,
 * held up, slowed down or closed.
 */
export type TcpProxy = {
  readonly port: number
  /** The same address by way of the proxy. */
  readonly url: (direct: string) => string
  /** Interrupts, once, the first connection whose traffic from now on comes as far as that. */
  readonly arm: (interruption: Interruption) => Armed
  /** Those that are open, in the order in which they came. */
  readonly connections: () => readonly Proxied[]
  readonly cut: (how: Cut) => void
  /** From now on everything is accepted and nothing passes, on open connections and on new ones. */
  readonly stall: () => void
  /** What was held back passes now, even what a client sent that has gone since. */
  readonly resume: () => void
  /** New connections are reset at once; open ones stay. */
  readonly refuse: () => void
  readonly accept: () => void
  /** How long each chunk takes in either direction. */
  readonly delay: (latencyMs: number) => void
  /** How much passes in a second, in each direction of each connection. */
  readonly throttle: (bytesPerSecond: number) => void
  /** Everything comes in runs of at most so many bytes, with a pause after each. */
  readonly slice: (bytes: number, gapMs: number) => void
  /** As it was made: open to all, and nothing held back, slowed down or sliced. */
  readonly heal: () => void
  /** How much is held back now. */
  readonly heldBytes: () => number
  readonly close: () => Promise<void>
}

export type Proxied = Pick<ProxiedConnection, 'number' | 'closed' | 'cut' | 'stall' | 'resume' | 'halfClose'>

export type Armed = {
  readonly hasFired: () => boolean
  readonly fired: Promise<Proxied>
  readonly disarm: () => void
}

type Options = {
  readonly target: { readonly host?: string; readonly port: number }
  /** The protocol whose messages can be counted. */
  readonly protocol?: 'postgres'
  /** Told of all that passes. */
  readonly observe?: (passed: Observation) => void
}

const LOOPBACK = '127.0.0.1'
const AT_FULL_SPEED = {
  latencyMs: 0,
  bytesPerSecond: Number.POSITIVE_INFINITY,
  sliceBytes: Number.POSITIVE_INFINITY,
  sliceGapMs: 0,
}

export async function createTcpProxy({ target, protocol, observe = () => {} }: Options): Promise<TcpProxy> {
  const open = new Set<ProxiedConnection>()
  const way: Way = { stalled: false, ...AT_FULL_SPEED, protocol, armed: new Set(), observe }
  let refusing = false
  let connections = 0

  function connect(client: Socket): void {
    client.on('error', () => {})
    if (refusing) {
      client.resetAndDestroy()
      return
    }
    const upstream = new Socket({ allowHalfOpen: true })
    const connection = new ProxiedConnection(way, connections++, client, upstream)
    open.add(connection)
    void connection.closed.then(() => open.delete(connection))
    upstream.setNoDelay(true).connect(target.port, target.host ?? LOOPBACK)
  }

  const server = createServer({ allowHalfOpen: true, noDelay: true }, connect)
  const port = await listen(server)

  return {
    port,
    url: (direct) => throughPort(direct, port),
    arm(interruption) {
      const armed = new ArmedInterruption<ProxiedConnection>(interruption)
      for (const connection of open) connection.startCounting(armed)
      way.armed.add(armed)
      return {
        hasFired: () => armed.hasFired,
        fired: armed.fired.promise,
        disarm: () => way.armed.delete(armed),
      }
    },
    connections: () => [...open],
    cut(how) {
      for (const connection of open) connection.cut(how)
    },
    stall() {
      way.stalled = true
    },
    resume() {
      way.stalled = false
      for (const connection of open) connection.resume()
    },
    refuse() {
      refusing = true
    },
    accept() {
      refusing = false
    },
    delay(latencyMs) {
      way.latencyMs = latencyMs
    },
    throttle(bytesPerSecond) {
      way.bytesPerSecond = bytesPerSecond
    },
    slice(bytes, gapMs) {
      Object.assign(way, { sliceBytes: bytes, sliceGapMs: gapMs })
    },
    heal() {
      refusing = false
      Object.assign(way, { stalled: false, ...AT_FULL_SPEED })
      for (const connection of open) {
        connection.resume()
        connection.hurry()
      }
    },
    heldBytes: () => [...open].reduce((sum, { heldBytes }) => sum + heldBytes, 0),
    async close() {
      refusing = true
      const closed = new Promise((resolve) => server.close(resolve))
      for (const connection of open) connection.cut('reset')
      await closed
    },
  }
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, LOOPBACK, resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return address.port
}

function throughPort(direct: string, port: number): string {
  const through = new URL(direct)
  through.hostname = LOOPBACK
  through.port = String(port)
  return through.href
}
