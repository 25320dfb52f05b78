import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../kernel/clock.ts'
import { asFault, type Fault } from '../kernel/fault.ts'
import type { Ids } from '../kernel/ids.ts'
import { renderFault } from './answer.ts'
import { createClientErrors } from './client-errors.ts'
import type { Connections } from './connections.ts'
import type { AnswerCors } from './cors.ts'
import { attachExchange, type Exchange } from './exchange.ts'
import { dialectFor, type FamilyName } from './families.ts'
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
  readonly answerCors: AnswerCors
  /** Routes and answers a request that nothing here has refused. */
  readonly handle: RequestListener
}

const CHECK_INTERVAL_MS = 500

/**
 * The server below the framework: it gives every request its id, takes the requests of a connection in turn, and
 * refuses what must not reach a route at all.
 */
export function createListener(parts: Parts) {
  const { clock, ids, limits, connections, traffic, findFamily, findFault, answerCors, handle } = parts
  const turns = createTurns({ connections, limits, run, onEnd: traffic.ended })
  const clientErrors = createClientErrors({
    ids,
    connections,
    turns,
    limits,
    findFamily,
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
    turns.receive({ id, family, request, response, connection, startedMs, refusal: undefined })
  }

  function run(exchange: Exchange): void {
    const { request, response } = exchange
    attachExchange(exchange)
    traffic.began()
    const fault = exchange.refusal ?? findFault(request)
    if (fault !== undefined) {
      refuse(exchange, fault)
      return
    }
    if (answerCors(exchange)) return
    try {
      handle(request, response)
    } catch (error) {
      refuse(exchange, asFault(error))
    }
  }

  /** Answers in place of a route, and ends the connection: nothing that follows such a request is believed. */
  function refuse(exchange: Exchange, fault: Fault): void {
    const { request, response, connection, family } = exchange
    traffic.refused(fault, exchange)
    turns.abandon(connection)
    if (response.headersSent) {
      connection.socket.destroy()
      return
    }
    const { status, headers, body } = renderFault(dialectFor(family, request.headers), fault, exchange.id)
    const own = { ...idHeaders(exchange.id), 'content-length': Buffer.byteLength(body) }
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
