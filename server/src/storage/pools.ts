import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Secret } from '../kernel/secret.ts'
import type { Log } from '../telemetry/log.ts'
import { connectionSettings, createSockets, type PostgresSettings } from './connection.ts'

/** Pools apart, so that no listing, look-up or report can make a call wait for a connection to its money. */
export type Pools = {
  /** For the statements that begin and end calls. They come in batches, so a few connections carry many calls. */
  readonly money: pg.Pool
  readonly rest: pg.Pool
  /** For pages of people: who reloads a heavy one waits for others who do, and no look-up of a key waits for either. */
  readonly pages: pg.Pool
  /** For the lease of this process alone: calls that wait for locked accounts must not make it look dead. */
  readonly lease: pg.Pool
  /** Lets running statements finish within the deadline, then drops what is left. */
  readonly close: (deadlineMs?: number) => Promise<void>
}

type Parts = {
  readonly url: Secret
  readonly log: Log
  readonly moneyConnections?: number
  readonly restConnections?: number
  /** The longest wait for a connection, be it a new one or one that is in use. */
  readonly connectTimeoutMs?: number
  readonly moneyQueryTimeoutMs?: number
  readonly restStatementTimeoutMs?: number
  /** How many may wait for a connection of one pool; the next is refused at once. */
  readonly waitingMax?: number
}

const CLOSE_DEADLINE_MS = 5_000
const ANSWER_MARGIN_MS = 1_000
/** Far longer than a batch has an account; who waits longer waits for somebody who is not a batch. */
const MONEY_LOCK_MS = 1_000
/**
 * Plans of statements about money are made once, over tables that may be empty then, and last as long as their connection. The order in which they lock accounts hangs on
 * these too.
 */
export const MONEY_SETTINGS: PostgresSettings = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_bitmapscan: 'off',
  enable_hashagg: 'off',
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
}
/**
 * To compile the statement of a large report takes seconds, to run it some tens of milliseconds. What reports read is in memory, as a rule: at the price of a disk's
 * random reads PostgreSQL takes an index by time, which has the rows of all accounts in order, for one that has the few of one account far apart.
 */
const REST_SETTINGS: PostgresSettings = { jit: 'off', random_page_cost: '1.1' }
const IDLE_REST_MS = 30_000
const PAGES = { connections: 4, statementTimeoutMs: 2_000, waitingMax: 200 } as const

export function createPools(parts: Parts): Pools {
  const { url, log, moneyConnections = 4, restConnections = 8, connectTimeoutMs = 5_000, waitingMax = 1_000 } = parts
  const { moneyQueryTimeoutMs = 2_000, restStatementTimeoutMs = 5_000 } = parts
  const sockets = createSockets()
  const shared = { url, sockets, connectTimeoutMs }
  // Money has no statement_timeout: a deadline there drops the connection and never cancels, and its callers learn what
  // became of a statement by sending it again with the same id.
  const money = createPool(log, waitingMax, {
    ...connectionSettings({
      ...shared,
      applicationName: 'farebox money',
      queryTimeoutMs: moneyQueryTimeoutMs,
      lockTimeoutMs: MONEY_LOCK_MS,
      settings: MONEY_SETTINGS,
    }),
    max: moneyConnections,
    idleTimeoutMillis: 0,
  })
  const lease = createPool(log, waitingMax, {
    ...connectionSettings({
      ...shared,
      applicationName: 'farebox lease',
      queryTimeoutMs: moneyQueryTimeoutMs,
      lockTimeoutMs: MONEY_LOCK_MS,
    }),
    max: 1,
    idleTimeoutMillis: 0,
  })
  const readers = (applicationName: string, statementTimeoutMs: number, max: number) => ({
    ...connectionSettings({
      ...shared,
      applicationName,
      statementTimeoutMs,
      queryTimeoutMs: statementTimeoutMs + ANSWER_MARGIN_MS,
      settings: REST_SETTINGS,
    }),
    // Whoever works in a transaction sends its next statement sooner than that.
    idle_in_transaction_session_timeout: 2 * statementTimeoutMs,
    max,
    idleTimeoutMillis: IDLE_REST_MS,
  })
  const rest = createPool(log, waitingMax, readers('farebox', restStatementTimeoutMs, restConnections))
  const pages = createPool(log, PAGES.waitingMax, readers('farebox pages', PAGES.statementTimeoutMs, PAGES.connections))

  async function end(deadlineMs: number): Promise<void> {
    const inTime = new AbortController()
    const goodbye = Promise.all([money.end(), rest.end(), pages.end(), lease.end()]).then(sockets.closed)
    await Promise.race([goodbye, delay(deadlineMs, undefined, { signal: inTime.signal }).catch(() => {})])
    inTime.abort()
    sockets.destroy()
  }

  let ended: Promise<void> | undefined
  return {
    money,
    rest,
    pages,
    lease,
    close(deadlineMs = CLOSE_DEADLINE_MS) {
      ended ??= end(deadlineMs)
      return ended
    },
  }
}

function createPool(log: Log, waitingMax: number, config: pg.PoolConfig): pg.Pool {
  const pool = new BoundedPool(config, waitingMax)
  // The URL has the password in it; whoever prints a pool should not print that.
  Object.defineProperty(pool.options, 'connectionString', { enumerable: false })
  pool.on('error', (error) => log.warn('an idle database connection was lost', { error }))
  // Without a listener of its own, a connection that is lost between two statements of a transaction would end the
  // process. Whoever uses it learns of the loss from the next statement.
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

type ConnectCallback = Parameters<typeof pg.Pool.prototype.connect>[0]

/** A pool whose queue has an end: in an outage, callers past it are refused instead of piling up. */
class BoundedPool extends pg.Pool {
  readonly #waitingMax: number

  constructor(config: pg.PoolConfig, waitingMax: number) {
    super(config)
    this.#waitingMax = waitingMax
  }

  override connect(): Promise<pg.PoolClient>
  override connect(callback: ConnectCallback): void
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | undefined {
    if (this.waitingCount < this.#waitingMax) {
      if (callback === undefined) return super.connect()
      super.connect(callback)
      return undefined
    }
    const error = new Error(`${this.#waitingMax} are waiting for a database connection already`)
    if (callback === undefined) return Promise.reject(error)
    process.nextTick(callback, error, undefined, () => {})
    return undefined
  }
}
