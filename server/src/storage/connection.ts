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
  /** What PostgreSQL is set to for these connections, whatever the URL sets it to. */
  readonly settings?: PostgresSettings
}

export type PostgresSettings = Readonly<Record<string, string>>

const KEEP_ALIVE_AFTER_MS = 10_000

export function connectionSettings(options: Options): pg.ClientConfig {
  const { url, applicationName, sockets, connectTimeoutMs, queryTimeoutMs, statementTimeoutMs, lockTimeoutMs } = options
  const { settings } = options
  return {
    ...(settings === undefined ? { connectionString: url.reveal() } : addressOf(url.reveal(), settings)),
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

/** As PostgreSQL takes them from a connection that starts. */
export function startupOptions(settings: PostgresSettings): string {
  const each = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  return each.join(' ')
}

const OPTIONS = 'options='

/**
 * node-postgres takes the options of a URL in the place of those that it is given. So they are taken out of it, and ours are put behind them: of two values for one setting
 * PostgreSQL takes the last.
 */
function addressOf(url: string, settings: PostgresSettings) {
  const [address = '', ...rest] = url.split('?')
  const parameters = rest.join('?').split('&')
  const theirs = parameters.filter((one) => one.startsWith(OPTIONS)).slice(-1)
  const others = parameters.filter((one) => one !== '' && !one.startsWith(OPTIONS))
  return {
    connectionString: others.length === 0 ? address : `${address}?${others.join('&')}`,
    options: [...theirs.map((one) => new URLSearchParams(one).get('options')), startupOptions(settings)].join(' '),
  }
}
