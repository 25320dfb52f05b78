import type { Socket } from 'node:net'
import { LRUCache } from 'lru-cache'
import { Pool } from 'undici'
import type { Clock } from '../kernel/clock.ts'
import { type Address, isTarget, parseBaseUrl } from './address.ts'
import type { Breakers } from './breakers.ts'
import { createConnector } from './connector.ts'
import { createDeadlines } from './deadlines.ts'
import { Exchange, type OpenReply, type StageDeadlines, type UpstreamReply } from './exchange.ts'
import { type Certainty, type FailureReason, UpstreamFailure } from './failure.ts'

export type { OpenReply, StageDeadlines, Timing, UpstreamReply } from './exchange.ts'
export { type Certainty, type FailureReason, UpstreamFailure } from './failure.ts'

export type UpstreamRequest = {
  readonly upstream: { readonly id: string; readonly baseUrl: string; readonly kind: 'native' | 'managed' }
  readonly method: 'GET' | 'POST'
  /** Path and query below the base URL's path, as they go over the wire. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | null
  readonly maxBodyBytes: number
  readonly deadlines: StageDeadlines
  readonly signal?: AbortSignal
}

/** Asks upstreams. Whatever goes wrong is an UpstreamFailure; nothing is ever sent twice, and no redirect followed. */
export type Transport = {
  /** Resolves when the answer's headers are there; its body comes as fast as it is read. */
  readonly open: (request: UpstreamRequest) => Promise<OpenReply>
  readonly send: (request: UpstreamRequest) => Promise<UpstreamReply>
  /** Gives up whatever is under way; resolves when every socket is closed. */
  readonly close: () => Promise<void>
}

/** What is counted: failures by reason and certainty. */
export type TransportMetrics = {
  readonly upstreamFailures: { inc(labels: { readonly reason: FailureReason; readonly certainty: Certainty }): void }
}

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>
  /** Without them, every upstream is asked whatever became of the calls before. */
  readonly breakers?: Breakers
  readonly metrics?: TransportMetrics
  readonly limits?: Partial<TransportLimits>
}

export type TransportLimits = {
  /** Origins with connections at once; of more, those that were asked longest ago lose theirs. */
  readonly origins: number
  readonly connectionsPerOrigin: number
  /** Calls that wait for a connection to an origin, those that are being made included. */
  readonly waitingPerOrigin: number
  /** Longest attempt to connect, whatever the deadline of the call that it was begun for. */
  readonly connectMs: number
  readonly headerBytes: number
}

const LIMITS: TransportLimits = {
  origins: 256,
  connectionsPerOrigin: 1_024,
  waitingPerOrigin: 1_024,
  connectMs: 10_000,
  headerBytes: 32_768,
}

/** A reused connection that the upstream has just closed costs a call of unknown outcome, so ours close well before. */
const IDLE_MS = { unlessTold: 4_000, most: 60_000, earlierThanTold: 2_000 }

const ADDRESSES_LIMIT = 4_096
const WAIT_FOR_ROOM_SECONDS = 1

/** What the connection itself says: it is ours to say, and some of it would change where a request goes or where it ends. */
const OURS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

type Origin = { readonly pool: Pool; waiting: number; readonly left: () => void }

export function createTransport({ clock, breakers, metrics, limits: given }: Parts): Transport {
  const limits = { ...LIMITS, ...given }
  const deadlines = createDeadlines(clock)
  const sockets = new Set<Socket>()
  const addresses = new LRUCache<string, Address>({ max: ADDRESSES_LIMIT })
  const origins = new LRUCache<string, Origin>({
    max: limits.origins,
    // Lets the calls finish that it has.
    dispose: ({ pool }) => void pool.close().catch(() => {}),
  })
  let isClosed = false

  function addressOf(baseUrl: string): Address {
    let address = addresses.get(baseUrl)
    if (address === undefined) {
      // Whether plain HTTP is fine was decided where the upstream was configured.
      address = parseBaseUrl(baseUrl, { allowPlainHttp: true })
      addresses.set(baseUrl, address)
    }
    return address
  }

  function originOf(name: string): Origin {
    const known = origins.get(name)
    if (known !== undefined) return known
    const pool = new Pool(name, {
      connections: limits.connectionsPerOrigin,
      connect: createConnector({ clock, deadlines, timeoutMs: limits.connectMs, sockets }),
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
    const origin: Origin = { pool, waiting: 0, left: () => (origin.waiting -= 1) }
    origins.set(name, origin)
    return origin
  }

  function begin(request: UpstreamRequest, collects: boolean): Exchange {
    const { upstream, method, target, body, signal } = request
    const refuse = (reason: FailureReason, retryAfterSeconds?: number) =>
      new UpstreamFailure(upstream.id, {
        reason,
        certainty: 'not_sent',
        ...(retryAfterSeconds && { retryAfterSeconds }),
      })
    if (isClosed) throw refuse('aborted')
    const headers = wireHeaders(request.headers)
    if (headers === undefined || !isTarget(target)) throw refuse('protocol')
    const address = addressOf(upstream.baseUrl)
    const origin = originOf(address.origin)
    if (origin.waiting >= limits.waitingPerOrigin) throw refuse('breaker', WAIT_FOR_ROOM_SECONDS)
    const exchange = new Exchange(
      {
        upstreamId: upstream.id,
        maxBodyBytes: request.maxBodyBytes,
        deadlines: request.deadlines,
        signal,
        clock,
        watch: deadlines,
        left: origin.left,
      },
      collects,
    )
    if (exchange.isOver) return exchange
    origin.waiting += 1
    origin.pool.dispatch({ path: address.prefix + target, method, headers, body }, exchange)
    return exchange
  }

  /** In the upstream's breaker, where there are breakers. */
  function run<T>(upstreamId: string, work: () => Promise<T>): Promise<T> {
    return breakers === undefined ? work() : breakers.run(upstreamId, work)
  }

  async function counted<T>(reply: Promise<T>): Promise<T> {
    try {
      return await reply
    } catch (error) {
      if (error instanceof UpstreamFailure)
        metrics?.upstreamFailures.inc({ reason: error.reason, certainty: error.certainty })
      throw error
    }
  }

  return {
    open: (request) => counted(run(request.upstream.id, async () => begin(request, false).opened)),
    send: (request) => counted(run(request.upstream.id, async () => begin(request, true).collected)),
    async close() {
      isClosed = true
      deadlines.close()
      const pools = [...origins.values()].map(({ pool }) => pool)
      await Promise.all(pools.map((pool) => pool.destroy()))
      await Promise.all([...sockets].map(closed))
    },
  }
}

/** As undici takes them, ours added; undefined where there is one that only we may say. */
function wireHeaders(given: Readonly<Record<string, string>>): string[] | undefined {
  const headers = ['accept-encoding', 'identity']
  for (const name of Object.keys(given)) {
    const lower = name.toLowerCase()
    if (OURS.has(lower)) return undefined
    const value = given[name]
    if (lower !== 'accept-encoding' && value !== undefined) headers.push(lower, value)
  }
  return headers
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', resolve)
    socket.destroy()
  })
}
