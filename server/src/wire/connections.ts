import type { Socket } from 'node:net'
import type { Clock } from '../kernel/clock.ts'
import { type Addresses, plainAddress } from './address.ts'
import type { Connection, Exchange } from './exchange.ts'
import type { EdgeLimits } from './limits.ts'

export type Connections = ReturnType<typeof createConnections>

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly addresses: Pick<Addresses, 'isTrusted'>
  readonly limits: Pick<EdgeLimits, 'connections' | 'connectionsPerAddress'>
}

/**
 * Knows every open connection and bounds their number. At the limit the one that has been idle longest gives way: those
 * who open connections and send nothing, or send slowly, are the idle ones, and they can't keep others out.
 */
export function createConnections({ clock, addresses, limits }: Parts) {
  const open = new Map<Socket, Connection>()
  const idle = new Set<Connection>()
  const perPeer = new Map<string, number>()

  function admit(socket: Socket): void {
    const peer = plainAddress(socket.remoteAddress ?? '')
    const fromPeer = perPeer.get(peer) ?? 0
    if (!addresses.isTrusted(peer) && fromPeer >= limits.connectionsPerAddress) {
      socket.destroy()
      return
    }
    if (open.size >= limits.connections && !evictOne()) {
      socket.destroy()
      return
    }
    const connection: Connection = {
      socket,
      peer,
      running: undefined,
      waiting: [],
      received: 0,
      newest: undefined,
      idleSinceMs: clock.monotonicMs(),
      isClosing: false,
      lastWords: undefined,
    }
    open.set(socket, connection)
    idle.add(connection)
    perPeer.set(peer, fromPeer + 1)
    socket.once('close', () => forget(connection))
  }

  function evictOne(): boolean {
    const [oldest] = idle
    if (oldest === undefined) return false
    forget(oldest)
    oldest.socket.destroy()
    return true
  }

  function forget(connection: Connection): void {
    if (!open.delete(connection.socket)) return
    idle.delete(connection)
    connection.waiting.length = 0
    const left = (perPeer.get(connection.peer) ?? 1) - 1
    if (left === 0) perPeer.delete(connection.peer)
    else perPeer.set(connection.peer, left)
  }

  function markRunning(connection: Connection, exchange: Exchange): void {
    connection.running = exchange
    idle.delete(connection)
  }

  function markIdle(connection: Connection): void {
    connection.running = undefined
    connection.idleSinceMs = clock.monotonicMs()
    if (open.has(connection.socket)) idle.add(connection)
  }

  return {
    admit,
    of: (socket: Socket) => open.get(socket),
    markRunning,
    markIdle,
    count: () => open.size,
    all: () => open.values(),
    running: () => open.size - idle.size,
    closeIdleFor(durationMs: number): void {
      const before = clock.monotonicMs() - durationMs
      for (const { socket, idleSinceMs } of [...idle]) if (idleSinceMs <= before) socket.destroy()
    },
    /** Cuts everything, and says how many requests were still running. */
    closeAll(): number {
      const cut = open.size - idle.size
      for (const { socket } of [...open.values()]) socket.destroy()
      return cut
    },
  }
}
