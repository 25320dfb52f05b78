import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  preHandlerAsyncHookHandler,
} from 'fastify'
import type { Caller } from '../identity/caller.ts'
import type { Identify } from '../identity/identify.ts'
import type { Clock } from '../kernel/clock.ts'
import { Fault, invalidRequest, noRoom } from '../kernel/fault.ts'
import { LARGE_BYTES, type Lease, type MemoryBudget, REQUEST_COPIES } from '../kernel/memory-budget.ts'
import type { Addresses } from '../wire/address.ts'
import { exchangeOf } from '../wire/exchange.ts'
import type { EdgeLimits } from '../wire/limits.ts'
import { idHeaders } from '../wire/send-whole.ts'
import { callerOf } from './caller.ts'
import { readCredential } from './credential.ts'
import { dialectAskedBy } from './failures.ts'
import { keyInUrl } from './key-in-url.ts'
import type { NearPath } from './near-path.ts'
import type { Policy } from './policies.ts'

/**
 * Whether a route asks who is calling. `optional` leaves a request without a credential to the route; a wrong one is
 * refused all the same.
 */
export type Access = 'credential' | 'optional' | 'public'

type Parts = {
  readonly identify: Identify
  readonly addresses: Addresses
  readonly limits: Pick<EdgeLimits, 'bodyBytes'>
  readonly memory: MemoryBudget
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly policy: Pick<Policy, 'unknownPath' | 'resource'>
  /** What a known caller may have meant with a path that does not exist. */
  readonly near: NearPath
  /** Counts a known caller's request for what is nowhere. */
  readonly countUnknown: ((request: FastifyRequest, reply: FastifyReply) => Promise<void>) | undefined
}

/** Changes of a key reach a process within a second; what is known of a caller is not older at the call. */
const FRESH_MS = 500

/**
 * The first thing that happens to every request: whether its route exists is told only to a caller who is known, and no
 * body is read from anybody else.
 */
export function createAdmission({ identify, addresses, limits, memory, clock, policy, near, countUnknown }: Parts) {
  function findCaller(request: FastifyRequest, access: Access): Caller | null | Promise<Caller> {
    const forwardedFor = request.headers['x-forwarded-for']
    const peer = exchangeOf(request.raw)?.connection.peer ?? ''
    request.address = addresses.callerAddress(peer, typeof forwardedFor === 'string' ? forwardedFor : undefined)
    if (access === 'public') return null
    const credential = readCredential(request.headers)
    if (credential !== undefined) {
      const found = identify(credential, request.address, policy.resource)
      if (found instanceof Promise) return found.then((caller) => fromAllowed(request, caller))
      return fromAllowed(request, found)
    }
    if (access === 'optional') return null
    const detail = keyInUrl(request.url, dialectAskedBy(request))
    throw new Fault('missing_credential', detail === undefined ? {} : { detail })
  }

  function judge(request: FastifyRequest): void {
    const detail = keyInUrl(request.url, dialectAskedBy(request))
    if (detail !== undefined) throw invalidRequest(detail)
    const { headers, is404 } = request
    if (is404) return
    const encoding = headers['content-encoding']
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
      throw new Fault('unsupported_media_type', { detail: 'Send the body without a content encoding.' })
    }
  }

  async function refuseUnknown(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (request.caller !== null) await countUnknown?.(request, reply)
    throw notFound(request, reply, near)
  }

  /** Now the body may come. */
  function invite({ headers, routeOptions }: FastifyRequest, reply: FastifyReply, hasRoom: boolean): void {
    if (!hasRoom) throw noRoom()
    const most = routeOptions.bodyLimit ?? limits.bodyBytes
    if (headers.expect !== undefined && lengthOf(headers) <= most) reply.raw.writeContinue()
  }

  /** Memory for what the request has, before any of its body is read. */
  function reserve({ raw, caller, routeOptions }: FastifyRequest): true | Promise<boolean> {
    const exchange = exchangeOf(raw)
    // Who has left meanwhile needs none, and would never give it back.
    if (exchange === undefined || exchange.response.closed) return Promise.resolve(false)
    exchange.memory ??= memory.open(caller?.accountId ?? '')
    const most = REQUEST_COPIES * (routeOptions.bodyLimit ?? limits.bodyBytes)
    if (!isChunked(raw.headers)) return exchange.memory.reserve(Math.min(REQUEST_COPIES * lengthOf(raw.headers), most))
    if (most > LARGE_BYTES) watchLength(raw, exchange.memory, most)
    return exchange.memory.reserve(Math.min(most, LARGE_BYTES))
  }

  const admit: onRequestHookHandler = (request, reply, done) => {
    // On the response itself, so that it is there whoever ends up answering.
    if (request.is404 || request.routeOptions.config.writesId !== true) setId(reply, request.id)
    const access = request.is404 ? policy.unknownPath : (request.routeOptions.config.access ?? 'credential')
    const settle = (caller: Caller | null): Promise<void> | undefined => {
      request.caller = caller
      judge(request)
      if (request.is404) return refuseUnknown(request, reply)
      const isReserved = reserve(request)
      if (isReserved !== true) return isReserved.then((hasRoom) => invite(request, reply, hasRoom))
      invite(request, reply, true)
      return undefined
    }
    try {
      const found = findCaller(request, access)
      const settled = found instanceof Promise ? found.then(settle) : settle(found)
      if (settled !== undefined) {
        settled.then(() => done(), done)
        return
      }
    } catch (error) {
      done(asError(error))
      return
    }
    done()
  }

  /**
   * A body may take a minute to come. Who calls is found out again then: a key may have been revoked, or have got another
   * budget, meanwhile.
   */
  const admitAgain: preHandlerAsyncHookHandler = async (request) => {
    const startedMs = exchangeOf(request.raw)?.startedMs ?? clock.monotonicMs()
    if (request.caller === null || clock.monotonicMs() - startedMs < FRESH_MS) return
    request.caller = await findCaller(request, 'credential')
  }

  return {
    admit,
    admitAgain,
    /** For what begins several things one after the other. */
    async callerNow(request: FastifyRequest): Promise<Caller> {
      request.caller = await findCaller(request, 'credential')
      return callerOf(request)
    },
    /** For what never gets as far as a route: who asks is found out before anything is said about it. */
    async identifyFirst(request: FastifyRequest): Promise<void> {
      request.caller = await findCaller(request, policy.unknownPath)
    },
  }
}

/** Who calls from where its key may be used. Who does not is known all the same, and its refusal counts for the key. */
function fromAllowed(request: FastifyRequest, caller: Caller): Caller {
  if (caller.networks === null || caller.networks.has(request.address)) return caller
  request.caller = caller
  throw new Fault('address_not_allowed', { detail: `Your address: ${request.address || 'unknown'}.` })
}

/**
 * A body whose length nobody knows is a small one until it turns out to be large. Then it waits for twice the room that it needs, each
 * time that it has outgrown what it has. Nobody waits for long before a call has begun, so that two of them can't wait for each other.
 */
function watchLength(raw: IncomingMessage, memory: Lease, most: number): void {
  let bytes = 0
  let roomBytes = LARGE_BYTES
  // It is read when its route reads it, and not because we listen.
  raw.pause().on('data', (piece: Buffer) => {
    bytes += piece.length
    if (roomBytes === most || REQUEST_COPIES * bytes <= roomBytes) return
    roomBytes = Math.min(most, 2 * REQUEST_COPIES * bytes)
    const isReserved = memory.reserve(roomBytes)
    if (isReserved === true) return
    raw.pause()
    isReserved.then((hasRoom) => {
      // Told to whoever reads it, as a failure of the body; what is left of that is thrown away.
      if (!hasRoom && !raw.destroyed && raw.listenerCount('error') > 0) raw.emit('error', noRoom())
      raw.resume()
    })
  })
}

function setId({ raw }: FastifyReply, id: string): void {
  const headers = idHeaders(id)
  for (const name in headers) raw.setHeader(name, headers[name] ?? '')
}

function lengthOf(headers: IncomingHttpHeaders): number {
  return Number(headers['content-length'] ?? 0)
}

/** Such a body may have any length, until it is there. */
function isChunked(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Fault('internal_error', { cause: thrown })
}

/** A path that takes other methods says which. */
function notFound(request: FastifyRequest, reply: FastifyReply, near: NearPath): Fault {
  const allowed = methodsAt(request.server, request.url)
  if (allowed.length === 0) {
    const path = request.caller === null ? undefined : near(request.method, request.url)
    return new Fault('route_not_found', path === undefined ? {} : { detail: `Did you mean ${path}?` })
  }
  reply.header('allow', allowed.join(', '))
  return new Fault('method_not_allowed')
}

function methodsAt(server: FastifyInstance, url: string): string[] {
  return server.supportedMethods.filter((method) => server.findRoute({ method, url }) !== null)
}
