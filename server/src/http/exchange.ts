import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Fault } from '../kernel/fault.ts'
import type { Lease } from '../kernel/memory-budget.ts'
import type { Connection } from './connections.ts'
import type { FamilyName } from './families.ts'

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
