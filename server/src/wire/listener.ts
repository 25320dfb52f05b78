import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../kernel/clock.ts'
import { asFault, Fault } from '../kernel/fault.ts'
import type { Ids } from '../kernel/ids.ts'
import type { RenderFault } from './answer.ts'
import { createClientErrors } from './client-errors.ts'
import type { Connections } from './connections.ts'
import type { AnswerCors } from './cors.ts'
import { attachExchange, type Exchange } from './exchange.ts'
import { dialectFor, type FamilyName } from './family.ts'
import type { EdgeLimits } from './limits.ts'
import { idHeaders } from './send-whole.ts'
import type { Traffic } from './traffic.ts'
import { createTurns } from './turns.ts'

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly ids: Ids
  readonly limits: EdgeLimits
  readonly connections: Connections
  readonly traffic: Traffic
  readonly findFamily: (url: string) => FamilyName
  readonly findFault: (request: IncomingMessage) => Fault | undefined
  /** Whether a Host is one of ours. */
  readonly isOurHost: (host: string) => boolean
  /** How a refusal looks to who asked. */
  readonly render: RenderFault
  readonly answerCors: AnswerCors
  /** Whether there is too much to do for one more request. */
  readonly mustShed: () => boolean
  /** Routes and answers a request that nothing here has refused. */
  readonly handle: RequestListener
}

const CHECK_INTERVAL_MS = 500
/** Whoever asks whether we live comes by address, and would end us when we have most to do if we turned it away. */
const HEALTH = 'health'
const SMALL_BODY_BYTES = 16 * 1024
/** Made once: to make an error costs more than to tell it. */
const OVERLOADED = new Fault('overloaded', { retryAfterSeconds: 1 })

/**
 * The server below the framework: it gives every request its id, takes the requests of a connection in turn, and
 * refuses what must not reach a route at all.
 */
export function createListener(parts: Parts) {
  const {
    clock,
    ids,
    limits,
    connections,
    traffic,
    findFamily,
    findFault,
    isOurHost,
    render,
    answerCors,
    mustShed,
    handle,
  } = parts
  const turns = createTurns({ connections, limits, run, onEnd })
  const clientErrors = createClientErrors({
    ids,
    connections,
    turns,
    limits,
    findFamily,
    render,
    refuse,
    note: traffic.refused,
  })

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const connection = connections.of(request.socket)
    if (connection === undefined) {
      request.socket.destroy()
      return
    }
    const id = ids.next()
    const family = findFamily(request.url ?? '')
    const startedMs = clock.monotonicMs()
    turns.receive({ id, family, request, response, connection, startedMs, memory: undefined, refusal: undefined })
  }

  /** The last byte of the answer has left the process, or nobody is there to get it. */
  function onEnd(exchange: Exchange): void {
    exchange.memory?.release()
    traffic.ended(exchange)
  }

  function run(exchange: Exchange): void {
    const { request, response } = exchange
    attachExchange(exchange)
    traffic.began()
    const isHealth = exchange.family.name === HEALTH
    const fault = exchange.refusal ?? findFault(request) ?? (isHealth ? undefined : wrongHost(request))
    if (fault !== undefined) {
      refuse(exchange, fault)
      return
    }
    if (answerCors(exchange)) return
    if (!isHealth && mustShed()) {
      // A request that is over when it is answered leaves nothing behind, neither a timer nor itself.
      if (isSmall(request)) request.once('end', () => turnAway(exchange)).resume()
      else turnAway(exchange)
      return
    }
    try {
      handle(request, response)
    } catch (error) {
      refuse(exchange, asFault(error))
    }
  }

  function wrongHost({ headers: { host = '' } }: IncomingMessage): Fault | undefined {
    return isOurHost(host) ? undefined : new Fault('misdirected_request')
  }

  /** Says that there is no room. The connection stays: to make a new one would cost both sides more than this did. */
  function turnAway(exchange: Exchange): void {
    const { request, response, connection } = exchange
    // It may have been told meanwhile that its body is broken, or late.
    if (response.headersSent) return
    traffic.shed()
    // Whether a body follows now is anybody's guess.
    if (request.headers.expect !== undefined) turns.closeAfterAll(connection)
    tell(exchange, OVERLOADED)
  }

  /** Answers in place of a route, and ends the connection: nothing that follows such a request is believed. */
  function refuse(exchange: Exchange, fault: Fault): void {
    const { response, connection } = exchange
    traffic.refused(fault, exchange)
    turns.abandon(connection)
    if (response.headersSent) connection.socket.destroy()
    else tell(exchange, fault)
  }

  function tell({ id, request, response, family }: Exchange, fault: Fault): void {
    const { status, headers, body } = render(dialectFor(family, request), fault, id)
    const own = { ...idHeaders(id), 'content-length': Buffer.byteLength(body) }
    response.writeHead(status, { ...headers, ...own }).end(body)
  }

  const server = createNodeServer(limits, receive)
    .on('connection', connections.admit)
    .on('connect', ({ socket }) => clientErrors.onConnect(socket))
    .on('timeout', (socket: Socket) => {
      // Waiting for us is not the caller's fault; leaving our answer unread, or saying nothing, is.
      if (connections.of(socket)?.running === undefined || socket.writableLength > 0) socket.destroy()
    })
  return { server, turns, onClientError: clientErrors.onError }
}

/** Whether all of it is here already, or will be in a moment. */
function isSmall({ headers }: IncomingMessage): boolean {
  if (headers.expect !== undefined || headers['transfer-encoding'] !== undefined) return false
  return Number(headers['content-length'] ?? 0) <= SMALL_BODY_BYTES
}

function createNodeServer(limits: EdgeLimits, receive: RequestListener): Server {
  const server = createServer(
    {
      httpValidation: 'strict',
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      // Missing hosts and unmet expectations are refused by us, with a request id and in the caller's protocol.
      requireHostHeader: false,
      noDelay: true,
      keepAlive: true,
    },
    receive,
  )
  server.on('checkContinue', receive)
  server.on('checkExpectation', receive)
  // Beyond a limit the server would drop headers without a word; we count them and refuse.
  server.maxHeadersCount = 0
  server.timeout = limits.responseStallMs
  return server
}
