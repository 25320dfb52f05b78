import { Socket } from 'node:net'
import type pg from 'pg'
import type { Secret } from '../kernel/secret.ts'
import { createColumnTypes } from './column-types.ts'

/** The sockets under some connections: a server that hangs answers no goodbye, so whoever closes must reach them. */
export type Sockets = {
  readonly create: () => Socket
  /** Resolves when those that are open now have closed. */
  readonly closed: () => Promise<void>
  readonly destroy: () => void
}

export function createSockets(): Sockets {
  const open = new Set<Socket>()
  return {
    create() {
      const socket = new Socket()
      open.add(socket)
      socket.once('close', () => open.delete(socket))
      return socket
    },
    async closed() {
      await Promise.all([...open].map((socket) => new Promise((resolve) => socket.once('close', resolve))))
    },
    destroy() {
      for (const socket of open) socket.destroy()
    },
  }
}

type Options = {
  readonly url: Secret
  /** What PostgreSQL shows of us in pg_stat_activity. */
  readonly applicationName: string
  readonly sockets: Sockets
  readonly connectTimeoutMs: number
  /** After this long without an answer the connection is given up, which also covers a server that hangs. */
  readonly queryTimeoutMs: number
  readonly statementTimeoutMs?: number
  readonly lockTimeoutMs?: number
}

const KEEP_ALIVE_AFTER_MS = 10_000

export function connectionSettings(options: Options): pg.ClientConfig {
  const { url, applicationName, sockets, connectTimeoutMs, queryTimeoutMs, statementTimeoutMs, lockTimeoutMs } = options
  return {
    connectionString: url.reveal(),
    application_name: applicationName,
    types: createColumnTypes(),
    stream: sockets.create,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: queryTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    ...(statementTimeoutMs === undefined ? {} : { statement_timeout: statementTimeoutMs }),
    ...(lockTimeoutMs === undefined ? {} : { lock_timeout: lockTimeoutMs }),
  }
}
