import type { Connections } from './connections.ts'
import type { Connection, Exchange } from './exchange.ts'
import type { EdgeLimits } from './limits.ts'

type Parts = {
  readonly connections: Connections
  readonly limits: Pick<EdgeLimits, 'pipelinedRequests' | 'requestsPerConnection' | 'lingerMs'>
  /** Answers one request; it is over when its response closes. */
  readonly run: (exchange: Exchange) => void
  readonly onEnd: (exchange: Exchange) => void
}

export type Turns = ReturnType<typeof createTurns>

/**
 * Runs the requests of a connection in turn. A caller may send the next before it has the answer to the last, but two
 * of them never run at once: the second may be billed, and its answer would be lost if the first one ends the connection.
 */
export function createTurns({ connections, limits, run, onEnd }: Parts) {
  let closing = false

  /** Takes a request whose headers have been read. After the last request of a connection, nothing more is taken. */
  function receive(exchange: Exchange): void {
    const { connection } = exchange
    if (connection.isClosing) return
    connection.received += 1
    connection.newest = exchange
    const isLast = connection.received >= limits.requestsPerConnection
    if (isLast || connection.waiting.length >= limits.pipelinedRequests) connection.isClosing = true
    if (connection.running === undefined) begin(exchange)
    else connection.waiting.push(exchange)
  }

  function begin(exchange: Exchange): void {
    const { connection, response } = exchange
    connections.markRunning(connection, exchange)
    response.once('close', () => end(exchange))
    if (closing) connection.isClosing = true
    announceClose(connection)
    run(exchange)
  }

  function end(exchange: Exchange): void {
    const { connection, request } = exchange
    onEnd(exchange)
    connections.markIdle(connection)
    // A connection may be silent for long, and need not keep its last request in memory.
    if (connection.newest === exchange && request.complete) connection.newest = undefined
    // An answer that ended the connection leaves nobody to answer the others to, so they don't run.
    if (!connection.socket.writable) return
    const next = connection.waiting.shift()
    if (next !== undefined) begin(next)
    else if (connection.isClosing) finish(connection)
    else if (!request.complete) linger(connection, exchange)
  }

  /** The body was not wanted, but closing at once would reset the connection and lose the answer on its way. */
  function linger(connection: Connection, exchange: Exchange): void {
    const { request } = exchange
    const timer = setTimeout(() => {
      if (!request.complete) connection.socket.destroy()
    }, limits.lingerMs).unref()
    // Thousands a second may be refused: none of them stays in memory for longer than its body takes.
    request.once('end', () => {
      clearTimeout(timer)
      if (connection.newest === exchange) connection.newest = undefined
    })
  }

  /** Takes nothing more from a connection, and ends it when all that came before has been answered. */
  function closeAfterAll(connection: Connection, lastWords?: () => void): void {
    connection.isClosing = true
    connection.lastWords ??= lastWords
    if (connection.running === undefined) finish(connection)
    else announceClose(connection)
  }

  function finish({ socket, lastWords }: Connection): void {
    if (lastWords === undefined) socket.destroySoon()
    else lastWords()
  }

  /** The last answer of a connection says that it is the last, if it is and if it can still be told. */
  function announceClose({ running, waiting, isClosing, lastWords }: Connection): void {
    if (!isClosing || lastWords !== undefined || running === undefined || waiting.length > 0) return
    if (!running.response.headersSent) running.response.setHeader('connection', 'close')
  }

  /** Forgets what waits on a connection and ends it with the answer that is running: nothing after it is believed. */
  function abandon(connection: Connection): void {
    connection.waiting.length = 0
    closeAfterAll(connection)
  }

  return {
    receive,
    closeAfterAll,
    abandon,
    /** From now on every connection ends with the answer to what it has sent so far. */
    closeAll(): void {
      closing = true
      for (const connection of connections.all()) if (connection.running !== undefined) closeAfterAll(connection)
    },
  }
}
