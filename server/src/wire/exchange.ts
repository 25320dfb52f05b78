import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Fault } from '../kernel/fault.ts'
import type { Lease } from '../kernel/memory-budget.ts'
import type { FamilyName } from './family.ts'

/** One request and its answer, from the moment that its headers have been read. */
export type Exchange = {
  readonly id: string
  readonly family: FamilyName
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly connection: Connection
  readonly startedMs: number
  /** What it holds of the process's memory, once it is known who asks. */
  memory: Lease | undefined
  /** Set where its body turned out to be broken while it waited for its turn. */
  refusal: Fault | undefined
}

/** One caller's connection. Its requests are answered one after another, so at most one of them is running. */
export type Connection = {
  readonly socket: Socket
  /** The other end, whoever it speaks for. */
  readonly peer: string
  running: Exchange | undefined
  readonly waiting: Exchange[]
  received: number
  /** The request that was received last, as long as it runs or its body is still on its way. */
  newest: Exchange | undefined
  idleSinceMs: number
  /** Set once nothing more is taken from it; it ends when all that came before has been answered. */
  isClosing: boolean
  /** What is left to say then, to something that was no request. */
  lastWords: (() => void) | undefined
}

const EXCHANGE = Symbol('exchange')

declare module 'node:http' {
  interface IncomingMessage {
    [EXCHANGE]?: Exchange
  }
}

export function attachExchange(exchange: Exchange): void {
  exchange.request[EXCHANGE] = exchange
}

export function exchangeOf(request: IncomingMessage): Exchange | undefined {
  return request[EXCHANGE]
}
