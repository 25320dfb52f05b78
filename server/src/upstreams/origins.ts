import type { LookupFunction, Socket } from 'node:net'
import { LRUCache } from 'lru-cache'
import { Pool } from 'undici'
import type { Clock } from '../kernel/clock.ts'
import { createConnector } from './connector.ts'
import type { Deadlines } from './deadlines.ts'

/** The connections to one origin. */
export type Origin = {
  readonly pool: Pool
  /** Calls that wait for a connection; whoever hands one to the pool counts it here. */
  waiting: number
  /** To be called once for each, when it no longer waits. */
  readonly left: () => void
}

export type Origins = {
  readonly get: (name: string) => Origin
  /** Resolves when every socket is closed. */
  readonly destroy: () => Promise<void>
}

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly deadlines: Deadlines
  readonly limits: {
    readonly origins: number
    readonly connectionsPerOrigin: number
    readonly connectMs: number
    readonly headerBytes: number
  }
  readonly lookup?: LookupFunction | undefined
}

/** A reused connection that the upstream has just closed costs a call of unknown outcome, so ours close well before. */
const IDLE_MS = { unlessTold: 4_000, most: 60_000, earlierThanTold: 2_000 }

export function createOrigins({ clock, deadlines, limits, lookup }: Parts): Origins {
  const sockets = new Set<Socket>()
  /** Those too that have lost their place and are finishing what they have. */
  const pools = new Set<Pool>()
  const origins = new LRUCache<string, Origin>({ max: limits.origins, dispose: ({ pool }) => void retire(pool) })

  async function retire(pool: Pool): Promise<void> {
    // It fails where it was destroyed meanwhile, which is just as well.
    await pool.close().catch(() => {})
    pools.delete(pool)
  }

  function create(name: string): Origin {
    const pool = new Pool(name, {
      connections: limits.connectionsPerOrigin,
      connect: createConnector({ clock, deadlines, timeoutMs: limits.connectMs, sockets, lookup }),
      allowH2: false,
      useMilo: false,
      pipelining: 1,
      maxHeaderSize: limits.headerBytes,
      keepAliveTimeout: IDLE_MS.unlessTold,
      keepAliveMaxTimeout: IDLE_MS.most,
      keepAliveTimeoutThreshold: IDLE_MS.earlierThanTold,
      // Exchanges keep their own deadlines.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    const origin: Origin = {
      pool,
      waiting: 0,
      left: () => {
        origin.waiting -= 1
      },
    }
    pools.add(pool)
    origins.set(name, origin)
    return origin
  }

  return {
    get: (name) => origins.get(name) ?? create(name),
    async destroy() {
      await Promise.all([...pools].map((pool) => pool.destroy()))
      await Promise.all([...sockets].map(closed))
    },
  }
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', resolve)
    socket.destroy()
  })
}
