import { once } from 'node:events'
import type { Server } from 'node:net'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Operation } from '../catalogue/operation.ts'
import type { Progress } from '../gateway/call-request.ts'
import type { Refuse } from '../gateway/refuse.ts'
import type { Caller } from '../identity/caller.ts'
import type { Identify } from '../identity/identify.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Ids } from '../kernel/ids.ts'
import { type MemoryBudget, unboundedMemory } from '../kernel/memory-budget.ts'
import type { FaultPage } from '../pages/fault-page.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createAddresses } from '../wire/address.ts'
import { createConnections } from '../wire/connections.ts'
import { createCors } from '../wire/cors.ts'
import { type Drained, type DrainOptions, drainServer } from '../wire/drain.ts'
import { exchangeOf } from '../wire/exchange.ts'
import { createFamilyFinder, type FamilyName } from '../wire/family.ts'
import { createHygiene } from '../wire/hygiene.ts'
import { DEFAULT_LIMITS, type EdgeLimits } from '../wire/limits.ts'
import { createListener } from '../wire/listener.ts'
import { createTraffic } from '../wire/traffic.ts'
import { type Access, createAdmission } from './admission.ts'
import { renderFault, withPages } from './answer.ts'
import { acceptForms, acceptJson } from './body.ts'
import { createFailureAnswer } from './failures.ts'
import type { Family, ListenerState } from './families.ts'
import { addHealth } from './health.ts'
import { createNearPath } from './near-path.ts'
import { CALLERS, type Policy } from './policies.ts'

/**
 * As many connections wait in the system until they are accepted, as far as it lets them (`net.core.somaxconn`, 4,096 as a rule). One more is not refused: its caller tries again after a
 * second, and then after three, while others are answered. Node's own 511 are fewer than come at once when a load balancer turns its callers to another process.
 */
const BACKLOG = 4_096

export type EdgeParts = {
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: Metrics
  readonly families: readonly Family[]
  /** What this listener takes and how it refuses; as callers' by default. */
  readonly policy?: Policy
  /** How a refusal looks to a person, where any come. */
  readonly faultPage?: FaultPage
  readonly identify: Identify
  /** What is missing before requests can be served, in short words that anybody may read; none when ready. */
  readonly readiness: () => readonly string[]
  /** Whether there is too much to do for one more request, asked for each but those about health; never by default. */
  readonly mustShed?: () => boolean
  /** Told of every fault that a known caller is answered with, which gives it as they are told; nobody by default. */
  readonly refuse?: Refuse
  /** Counts a request of a known caller for what is nowhere, and refuses one beyond its limits; by default it counts for nothing. */
  readonly countUnknown?: (request: FastifyRequest, reply: FastifyReply) => Promise<void>
  /** What requests, replies and unread answers may take of the process's memory; as much as they want by default. */
  readonly memory?: MemoryBudget
  readonly limits?: Partial<EdgeLimits>
  /** Origins whose pages may call from a browser; none by default. */
  readonly corsOrigins?: readonly string[]
  /** Networks whose X-Forwarded-For is believed; none by default. */
  readonly trustedProxies?: readonly string[]
  /** Is told of a peer that says for whom it asks, and is not believed. */
  readonly onUnlistedProxy?: (peer: string) => void
  /** Response headers of ours that pages of those origins may read. */
  readonly exposedHeaders?: readonly string[]
}

export type Edge = {
  /** Resolves with the port, which the system chooses for 0. */
  readonly listen: (at: { readonly host: string; readonly port: number }) => Promise<{ readonly port: number }>
  /** Finishes what was accepted and stops. Calling it again waits for the same end. */
  readonly drain: (options?: DrainOptions) => Promise<Drained>
  /** How many connections have a request that is not answered yet. */
  readonly busy: () => number
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route asks who is calling; it does unless it says otherwise. */
    access?: Access
    /** The route's 400 is `{ "error": "…" }`, whatever its family's dialect. */
    plainBadRequest?: boolean
    /** People open the route in a browser, so that its refusals are pages, whatever its family's dialect. */
    isPage?: boolean
    family?: FamilyName
    /** Which call a request of the route is; undefined where it is none. */
    callOf?: (request: FastifyRequest) => Operation | undefined
    /** The route puts the request's id on its answers by itself. */
    writesId?: boolean
  }
  interface FastifyRequest {
    caller: Caller | null
    /** The caller's address, as far as it can be known. */
    address: string
    /** The bytes of a JSON body as they came. */
    rawBody: Buffer | null
    /** Of a call that is being made, how far it has come. */
    progress: Progress | null
  }
}

/** The one way in: every request of every protocol is taken, refused and answered here. */
export function createEdge(parts: EdgeParts): Edge {
  const { clock, ids, policy = CALLERS } = parts
  const render = parts.faultPage === undefined ? renderFault : withPages(parts.faultPage)
  const limits = { ...DEFAULT_LIMITS, ...parts.limits }
  const addresses = createAddresses(parts.trustedProxies ?? [], parts.onUnlistedProxy)
  const connections = createConnections({ clock, addresses, limits })
  const traffic = createTraffic(parts)
  const { server, turns, onClientError } = createListener({
    clock,
    ids,
    limits,
    connections,
    traffic,
    findFamily: createFamilyFinder(parts.families, policy),
    findFault: createHygiene({ limits }),
    isOurHost: policy.isOurHost,
    render,
    answerCors: createCors({ origins: parts.corsOrigins ?? [], exposedHeaders: parts.exposedHeaders ?? [] }),
    mustShed: parts.mustShed ?? (() => false),
    handle: (request, response) => root.routing(request, response),
  })

  const answerFailure = createFailureAnswer({
    traffic,
    render,
    refuse: parts.refuse ?? ((_, fault) => fault),
    policy,
  })
  const memory = parts.memory ?? unboundedMemory(clock)
  const { admit, admitAgain, callerNow, identifyFirst } = createAdmission({
    identify: parts.identify,
    addresses,
    limits,
    memory,
    clock,
    policy,
    near: (method, url) => near(method, url),
    countUnknown: parts.countUnknown,
  })
  const root = fastify({
    serverFactory: () => server,
    clientErrorHandler: onClientError,
    genReqId: (request) => exchangeOf(request)?.id ?? ids.next(),
    bodyLimit: limits.bodyBytes,
    // A HEAD would run the call that its GET is, and be billed for it.
    exposeHeadRoutes: false,
    // Too long a parameter would be refused before the caller is known, and tell that the route exists.
    routerOptions: { maxParamLength: limits.urlBytes },
    frameworkErrors: (error, request, reply) => {
      identifyFirst(request).then(
        () => answerFailure(error, request, reply),
        (fault: unknown) => answerFailure(fault, request, reply),
      )
    },
  })
  const near = createNearPath(root)
  root.decorateRequest('caller', null)
  root.decorateRequest('address', '')
  root.decorateRequest('rawBody', null)
  root.decorateRequest('progress', null)
  root.setErrorHandler(answerFailure)
  root.addHook('onRequest', admit)
  root.addHook('preHandler', admitAgain)
  acceptJson(root, limits)

  let drained: Promise<Drained> | undefined
  addHealth(root, { readiness: () => (drained === undefined ? parts.readiness() : ['draining']) })
  const { home } = policy
  if (home !== undefined) root.get('/', { config: { access: 'public' }, exposeHeadRoute: true }, async () => home)
  const state = { callerNow, isDraining: () => drained !== undefined }
  for (const family of parts.families) addFamily(root, family, state)

  async function stop(options: DrainOptions | undefined): Promise<Drained> {
    const result = await drainServer({ clock, server, connections, turns }, options)
    await root.close()
    return result
  }

  return {
    async listen(at) {
      await root.ready()
      server.listen({ ...at, backlog: BACKLOG })
      await once(server, 'listening')
      // The system may run out of what a connection needs; that must not end the ones that are there.
      server.on('error', (error) => parts.log.warn('a connection was not accepted', { error }))
      return { port: portOf(server) }
    },
    drain(options) {
      drained ??= stop(options)
      return drained
    },
    busy: connections.running,
  }
}

function addFamily(
  root: FastifyInstance,
  { name, prefix, dialect, bodies = 'json', bodyBytes, register }: Family,
  state: ListenerState,
): void {
  const family: FamilyName = { name, prefix, dialect }
  root.register(
    async (scope) => {
      scope.addHook('onRoute', (route) => {
        route.config = { ...route.config, family }
        if (bodyBytes !== undefined) route.bodyLimit ??= bodyBytes
      })
      if (bodies === 'form') acceptForms(scope)
      await register(scope, state)
    },
    { prefix },
  )
}

function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port')
  return address.port
}
