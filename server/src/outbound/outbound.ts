import { isIP } from 'node:net'
import type { Clock } from '../kernel/clock.ts'
import type { Log } from '../telemetry/log.ts'
import { createTransport, type StageDeadlines, UpstreamFailure, type UpstreamReply } from '../upstreams/transport.ts'
import { OutboundFailure, type OutboundReason } from './failure.ts'
import { createRefusedRange } from './refused-ranges.ts'
import { createGuardedLookup, createRequirePublic, createResolve, RefusedAddress, type Resolve } from './resolve.ts'
import { parseTarget, type Target } from './target.ts'

export type OutboundRequest = {
  /** As a stranger gave it. */
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  /** The largest answer; never more than the limit of the client. */
  readonly maxBodyBytes?: number
  readonly signal?: AbortSignal
}

export type OutboundReply = Pick<UpstreamReply, 'status' | 'headers' | 'body'>

/**
 * Asks addresses that strangers give us. Whatever goes wrong is an OutboundFailure; nothing is sent twice, and no redirect followed.
 */
export type Outbound = {
  readonly send: (request: OutboundRequest) => Promise<OutboundReply>
  /** Gives up whatever is under way; resolves when every socket is closed. */
  readonly close: () => Promise<void>
}

/** Any public address and the listed origins, the listed origins alone, or nobody. */
export type OutboundAccess = 'public' | 'listed' | 'none'

type Parts = {
  readonly access: OutboundAccess
  /** Origins that pass without a check of where they lead, such as an issuer in the operator's own network. */
  readonly allowedOrigins: readonly string[]
  /** Networks that are refused beside those that are not public, such as 2001:db8::/32. */
  readonly refusedNetworks?: readonly string[]
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>
  readonly log: Pick<Log, 'info' | 'warn'>
  readonly metrics?: {
    readonly outboundRequests: { inc(labels: { readonly outcome: OutboundReason | 'answered' }): void }
  }
  /** How strangers' names are resolved. */
  readonly resolve?: Resolve
  readonly limits?: Partial<OutboundLimits>
}

export type OutboundLimits = {
  readonly bodyBytes: number
  readonly headerBytes: number
  readonly deadlines: StageDeadlines
  /** Requests at once, to all and to one origin; the next is refused. */
  readonly atOnce: number
  readonly atOncePerOrigin: number
  /** At which strangers' addresses are asked. */
  readonly ports: readonly number[]
}

const LIMITS: OutboundLimits = {
  bodyBytes: 65_536,
  headerBytes: 16_384,
  deadlines: { connectMs: 4_000, headersMs: 5_000, idleMs: 5_000, totalMs: 10_000 },
  atOnce: 64,
  atOncePerOrigin: 8,
  ports: [443],
}

const REASONS: Readonly<Record<UpstreamFailure['reason'], OutboundReason>> = {
  connect: 'unreachable',
  dns: 'unreachable',
  tls: 'unreachable',
  breaker: 'busy',
  headers_timeout: 'timeout',
  idle_timeout: 'timeout',
  total_timeout: 'timeout',
  reset: 'unreadable',
  too_large: 'too_large',
  protocol: 'unreadable',
  aborted: 'aborted',
}

export function createOutbound(parts: Parts): Outbound {
  const { access, clock, log, metrics, resolve = createResolve() } = parts
  const limits = { ...LIMITS, ...parts.limits }
  const requirePublic = createRequirePublic(createRefusedRange(parts.refusedNetworks ?? []))
  const listed = new Set(parts.allowedOrigins)
  const shared = {
    clock,
    limits: {
      connectionsPerOrigin: limits.atOncePerOrigin,
      connectMs: limits.deadlines.connectMs,
      headerBytes: limits.headerBytes,
    },
  }
  const strangers = createTransport({ ...shared, lookup: createGuardedLookup(resolve, requirePublic) })
  const known = createTransport(shared)
  const running = new Map<string, number>()
  let runningInAll = 0

  async function ask(target: Target, request: OutboundRequest): Promise<OutboundReply> {
    if (!target.isListed && access !== 'public') throw new OutboundFailure('closed')
    // A socket asks no resolver about what is an address already.
    if (!target.isListed && isIP(target.host) !== 0) requirePublic(target.host, target.host)
    const { method, headers = {}, body = null, maxBodyBytes = limits.bodyBytes, signal } = request
    const reply = await (target.isListed ? known : strangers).send({
      upstream: { id: target.origin, baseUrl: target.origin, kind: 'native' },
      method,
      target: target.path,
      headers,
      body,
      maxBodyBytes: Math.min(maxBodyBytes, limits.bodyBytes),
      deadlines: limits.deadlines,
      ...(signal === undefined ? {} : { signal }),
    })
    if (reply.status >= 300 && reply.status < 400) throw new OutboundFailure('redirect')
    // We ask for none. What is never decoded can't grow.
    if ((reply.headers['content-encoding'] ?? 'identity') !== 'identity') throw new OutboundFailure('unreadable')
    return { status: reply.status, headers: reply.headers, body: reply.body }
  }

  /** Whoever would wait is refused: a stranger who answers slowly must not keep others waiting. */
  async function bounded<T>(origin: string, work: () => Promise<T>): Promise<T> {
    const own = running.get(origin) ?? 0
    if (runningInAll >= limits.atOnce || own >= limits.atOncePerOrigin) throw new OutboundFailure('busy')
    running.set(origin, own + 1)
    runningInAll += 1
    try {
      return await work()
    } finally {
      runningInAll -= 1
      const left = (running.get(origin) ?? 1) - 1
      if (left === 0) running.delete(origin)
      else running.set(origin, left)
    }
  }

  async function send(request: OutboundRequest): Promise<OutboundReply> {
    let host = ''
    try {
      if (access === 'none') throw new OutboundFailure('closed')
      const target = parseTarget(request.url, { listed, ports: limits.ports })
      host = target.host
      const reply = await bounded(target.origin, () => ask(target, request))
      metrics?.outboundRequests.inc({ outcome: 'answered' })
      return reply
    } catch (error) {
      const failure = failureOf(error)
      metrics?.outboundRequests.inc({ outcome: failure.reason })
      const fields = { host, reason: failure.reason, error: failure.cause }
      if (refusedIn(failure)) log.warn('an address that a stranger gave leads into a network that is refused', fields)
      else if (failure.cause !== undefined) log.info('an address that a stranger gave did not answer', fields)
      throw failure
    }
  }

  return {
    send,
    async close() {
      await Promise.all([strangers.close(), known.close()])
    },
  }
}

function failureOf(error: unknown): OutboundFailure {
  if (error instanceof OutboundFailure) return error
  if (error instanceof RefusedAddress) return new OutboundFailure('unreachable', { cause: error })
  if (!(error instanceof UpstreamFailure)) throw error
  // Who was never reached in time was not reached, whatever kept us.
  const isLate = error.certainty === 'not_sent' && error.reason === 'total_timeout'
  return new OutboundFailure(isLate ? 'unreachable' : REASONS[error.reason], { cause: error })
}

const CAUSES_LIMIT = 5

function refusedIn(failure: OutboundFailure): boolean {
  let error: unknown = failure
  for (let depth = 0; depth < CAUSES_LIMIT && error instanceof Error; depth += 1) {
    if (error instanceof RefusedAddress) return true
    error = error.cause
  }
  return false
}
