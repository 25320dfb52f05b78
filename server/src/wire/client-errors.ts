import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import type { Ids } from '../kernel/ids.ts'
import type { Answer, RenderFault } from './answer.ts'
import type { Connections } from './connections.ts'
import type { Connection, Exchange } from './exchange.ts'
import type { FamilyName } from './family.ts'
import type { EdgeLimits } from './limits.ts'
import { idHeaders } from './send-whole.ts'
import type { Turns } from './turns.ts'

type Parts = {
  readonly ids: Ids
  readonly connections: Connections
  readonly turns: Turns
  readonly limits: Pick<EdgeLimits, 'lingerMs' | 'headerBytes'>
  readonly findFamily: (url: string) => FamilyName
  readonly render: RenderFault
  readonly refuse: (exchange: Exchange, fault: Fault) => void
  readonly note: (fault: Fault) => void
}

type ParserError = Error & { readonly code?: string | undefined; readonly rawPacket?: unknown }

/**
 * Answers what the parser could not read, and what did not arrive in time. Every request before it still gets its own
 * answer first, none gets two, and the connection ends.
 */
export function createClientErrors({ ids, connections, turns, limits, findFamily, render, refuse, note }: Parts) {
  function onError(error: ParserError, socket: Socket): void {
    const connection = connections.of(socket)
    if (connection === undefined || error.code === 'ECONNRESET' || !socket.writable || socket.bytesRead === 0) {
      socket.destroy()
    } else if (!connection.isClosing) {
      const { newest } = connection
      const fault = faultOf(error, limits)
      if (newest === undefined || newest.request.complete) answerLast(connection, fault, error.rawPacket)
      else breakOff(connection, newest, fault)
    }
  }

  /** The newest request broke off in its body. */
  function breakOff(connection: Connection, broken: Exchange, fault: Fault): void {
    if (connection.waiting.includes(broken)) {
      broken.refusal = fault
      turns.closeAfterAll(connection)
    } else if (connection.running === broken && !broken.response.headersSent) {
      refuse(broken, fault)
    } else {
      connection.socket.destroy()
    }
  }

  /** What can't be read belongs to no request, so its answer is written by hand, after those to all that do. */
  function answerLast(connection: Connection, fault: Fault, packet?: unknown): void {
    turns.closeAfterAll(connection, () => {
      note(fault)
      const { dialect } = findFamily(targetOf(packet))
      const id = ids.next()
      connection.socket.end(asText(render(dialect, fault, id), id))
      // Closing at once would reset the connection and lose the answer, if the caller is still sending.
      setTimeout(() => connection.socket.destroy(), limits.lingerMs).unref()
    })
  }

  function onConnect(socket: Socket): void {
    // The server has let go of this socket, its errors included.
    socket.on('error', () => socket.destroy())
    const connection = connections.of(socket)
    if (connection === undefined || connection.isClosing) socket.destroy()
    else answerLast(connection, invalidRequest('The method CONNECT is not supported.'))
  }

  return { onError, onConnect }
}

function faultOf({ code }: ParserError, { headerBytes }: Pick<EdgeLimits, 'headerBytes'>): Fault {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new Fault('request_timeout')
  if (code === 'HPE_HEADER_OVERFLOW') {
    const detail = `The headers are too large: the limit is ${headerBytes} bytes. Send fewer or shorter ones.`
    return new Fault('headers_too_large', { detail })
  }
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW')
    return new Fault('body_too_large', {
      detail: 'The chunk extensions are too large: the limit is 16 KiB. Leave them out.',
    })
  return invalidRequest('The request is not valid HTTP/1.1.')
}

const REQUEST_LINE = /^[A-Z]{3,20} (\/[!-~]{0,60})/

/** The path that a packet seems to ask for. It only chooses the shape of the refusal. */
function targetOf(packet: unknown): string {
  return Buffer.isBuffer(packet) ? (REQUEST_LINE.exec(packet.toString('latin1', 0, 100))?.[1] ?? '') : ''
}

function asText({ status, headers, body }: Answer, requestId: string): string {
  const lines = Object.entries({
    ...headers,
    ...idHeaders(requestId),
    date: new Date().toUTCString(),
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${body}`
}
