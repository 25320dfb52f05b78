import type { LookupFunction } from 'node:net'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../kernel/clock.ts'
import type { ReplyRoom } from '../kernel/memory-budget.ts'
import { type Address, isTarget, parseBaseUrl } from './address.ts'
import { type Breakers, isToBlame } from './breakers.ts'
import { createDeadlines } from './deadlines.ts'
import { type OpenReply, type StageDeadlines, UpstreamExchange, type UpstreamReply } from './exchange.ts'
import { type Certainty, type FailureReason, UpstreamFailure } from './failure.ts'
import type { UpstreamFigures } from './figures.ts'
import { createOrigins } from './origins.ts'

export type { Body, OpenReply, StageDeadlines, Timing, UpstreamReply } from './exchange.ts'
export { type Certainty, type FailureReason, UpstreamFailure } from './failure.ts'

export type UpstreamRequest = {
  readonly upstream: {
    readonly id: string
    readonly baseUrl: string
    readonly kind: 'native' | 'managed'
    readonly slot?: string
    /** What operators know it by; its id where left out. */
    readonly name?: string
  }
  readonly method: 'GET' | 'POST'
  /** Path and query below the base URL's path, as they go over the wire. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | null
  readonly maxBodyBytes: number
  /** What of the process's memory the reply may take until it asks for more; all that it can need where left out. */
  readonly room?: ReplyRoom | undefined
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

/** What is counted: failures by upstream, reason and certainty. */
export type TransportMetrics = {
  readonly upstreamFailures: {
    inc(labels: { readonly upstream: string; readonly reason: FailureReason; readonly certainty: Certainty }): void
  }
}

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>
  /** Without them, every upstream is asked whatever became of the calls before. */
  readonly breakers?: Breakers
  readonly metrics?: TransportMetrics
  /** How each upstream answers, for operators. */
  readonly figures?: Pick<UpstreamFigures, 'note'>
  readonly limits?: Partial<TransportLimits>
  /** How names are resolved, in place of the system's way. */
  readonly lookup?: LookupFunction
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

export function createTransport({ clock, breakers, metrics, figures, limits: given, lookup }: Parts): Transport {
  const limits = { ...LIMITS, ...given }
  const deadlines = createDeadlines(clock)
  const origins = createOrigins({ clock, deadlines, limits, lookup })
  const addresses = new LRUCache<string, Address>({ max: ADDRESSES_LIMIT })
  let isClosed = false

  function addressOf(baseUrl: string): Address | undefined {
    const known = addresses.get(baseUrl)
    if (known !== undefined) return known
    try {
      // Whether plain HTTP is fine was decided where the upstream was configured.
      const address = parseBaseUrl(baseUrl, { allowPlainHttp: true })
      addresses.set(baseUrl, address)
      return address
    } catch {
      return undefined
    }
  }

  function begin(request: UpstreamRequest, collects: boolean): UpstreamExchange {
    const { upstream, method, target, body, signal } = request
    if (isClosed) throw refusal(upstream, 'aborted')
    const headers = wireHeaders(request.headers)
    const address = addressOf(upstream.baseUrl)
    if (headers === undefined || address === undefined) throw refusal(upstream, 'protocol')
    const origin = origins.get(address.origin)
    if (origin.waiting >= limits.waitingPerOrigin)
      throw refusal(upstream, 'breaker', { retryAfterSeconds: WAIT_FOR_ROOM_SECONDS })
    const exchange = new UpstreamExchange(
      {
        upstream: nameOf(upstream),
        maxBodyBytes: request.maxBodyBytes,
        room: request.room,
        deadlines: request.deadlines,
        signal,
        clock,
        watch: deadlines,
        left: origin.left,
        brokeOff: count,
      },
      collects,
    )
    if (exchange.isOver) return exchange
    origin.waiting += 1
    origin.pool.dispatch({ path: address.prefix + target, method, headers, body }, exchange)
    return exchange
  }

  const count = ({ upstream, reason, certainty }: UpstreamFailure) =>
    metrics?.upstreamFailures.inc({ upstream, reason, certainty })

  async function ask<Reply extends Pick<UpstreamReply, 'status'>>(
    { upstream, target }: UpstreamRequest,
    work: () => Promise<Reply>,
  ): Promise<Reply> {
    const askedAtMs = clock.monotonicMs()
    try {
      // What we refuse ourselves is no trial of the upstream.
      if (!isTarget(target)) throw refusal(upstream, 'protocol')
      const reply = await (breakers === undefined ? work() : breakers.run(upstream, work))
      figures?.note(upstream.id, clock.monotonicMs() - askedAtMs, isFailure(reply.status))
      return reply
    } catch (error) {
      if (error instanceof UpstreamFailure) count(error)
      if (isToBlame(error)) figures?.note(upstream.id, clock.monotonicMs() - askedAtMs, true)
      throw error
    }
  }

  return {
    open: (request) => ask(request, () => begin(request, false).opened),
    send: (request) => ask(request, () => begin(request, true).collected),
    async close() {
      isClosed = true
      deadlines.close()
      await origins.destroy()
    },
  }
}

/** Of the provider, or of our account there: nothing that a caller could have sent otherwise. */
function isFailure(status: number): boolean {
  return status >= 500 || status === 401 || status === 402 || status === 429
}

/** What operators know it by. */
export function nameOf({ id, name = id }: Pick<UpstreamRequest['upstream'], 'id' | 'name'>): string {
  return name
}

function refusal(
  upstream: UpstreamRequest['upstream'],
  reason: FailureReason,
  more: { retryAfterSeconds?: number } = {},
): UpstreamFailure {
  return new UpstreamFailure(nameOf(upstream), { reason, certainty: 'not_sent', ...more })
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
