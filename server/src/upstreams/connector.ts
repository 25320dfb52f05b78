import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import type { buildConnector } from 'undici'
import type { Clock } from '../kernel/clock.ts'
import type { Deadlines, Watched } from './deadlines.ts'
import type { FailureReason } from './failure.ts'

/** A connection that did not come about: nothing of any call went out. */
export class ConnectFailure extends Error {
  readonly reason: Extract<FailureReason, 'connect' | 'dns' | 'tls'>

  constructor(reason: ConnectFailure['reason'], cause: unknown) {
    super(`no connection (${reason})`, { cause })
    this.name = 'ConnectFailure'
    this.reason = reason
  }
}

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly deadlines: Deadlines
  readonly timeoutMs: number
  /** Every socket is here from its making to its end, those that are still connecting included. */
  readonly sockets: Set<Socket>
  /** How names are resolved, in place of the system's way. The socket connects to what it says, and asks nobody again. */
  readonly lookup?: LookupFunction | undefined
}

const KEEP_ALIVE_AFTER_MS = 30_000
const READ_BYTES = 65_536
const NOT_RESOLVED = 'getaddrinfo'

/**
 * Makes the connections of one origin. undici's own connector tells neither name, connection and certificate apart, nor can
 * its attempts be reached while they last.
 */
export function createConnector({ clock, deadlines, timeoutMs, sockets, lookup }: Parts): buildConnector.connector {
  /** Of the connection before, which saves the next one a round trip. */
  let session: Buffer | undefined

  return ({ hostname, protocol, port }, callback) => {
    const isSecure = protocol === 'https:'
    const common = {
      host: hostname,
      highWaterMark: READ_BYTES,
      noDelay: true,
      ...(lookup === undefined ? {} : { lookup }),
    }
    const socket = isSecure
      ? connectSecurely({
          ...common,
          port: Number(port || 443),
          servername: isIP(hostname) === 0 ? hostname : '',
          ALPNProtocols: ['http/1.1'],
          ...(session === undefined ? {} : { session }),
        }).on('session', (latest: Buffer) => {
          session = latest
        })
      : connect({ ...common, port: Number(port || 80) })
    sockets.add(socket)
    socket.setKeepAlive(true, KEEP_ALIVE_AFTER_MS)

    const attempt: Watched = {
      place: -1,
      deadlineMs: clock.monotonicMs() + timeoutMs,
      overdue: () => socket.destroy(new Error(`not connected within ${timeoutMs} ms`)),
      abandon: () => socket.destroy(),
    }
    deadlines.watch(attempt)

    let isHandshaking = false
    let isSettled = false
    const settle = (): boolean => {
      if (isSettled) return false
      isSettled = true
      deadlines.forget(attempt)
      return true
    }
    const fail = (cause?: Error) => {
      if (settle()) callback(new ConnectFailure(reasonOf(cause, isHandshaking), cause), null)
    }
    socket
      // An error after the connection was made is told to undici by a listener of its own.
      .on('error', fail)
      .once('close', () => {
        sockets.delete(socket)
        fail()
      })
      .once('connect', () => {
        isHandshaking = isSecure
      })
      .once(isSecure ? 'secureConnect' : 'connect', () => {
        if (settle()) callback(null, socket)
      })
  }
}

function reasonOf(cause: Error | undefined, isHandshaking: boolean): ConnectFailure['reason'] {
  if (cause !== undefined && 'syscall' in cause && cause.syscall === NOT_RESOLVED) return 'dns'
  return isHandshaking ? 'tls' : 'connect'
}
