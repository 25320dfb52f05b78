import type { Piece } from './postgres-messages.ts'

export type Direction = 'toServer' | 'toClient'
/** TCP's two ways to end: RST, as when a machine or a middlebox fails; FIN, as when a process ends. */
export type Cut = 'reset' | 'end'

export type Interruption = {
  readonly direction: Direction
  readonly at: Place
  /** Cut both sides, or let nothing more pass on this connection. */
  readonly effect: Cut | 'stall'
}

/**
 * How much still passes. An interruption happens when the last of it has passed, or, where nothing may, when the first
 * byte arrives. Messages can be counted where the proxy knows the protocol; `part` lets some of the next one pass.
 */
export type Place =
  | { readonly afterBytes: number }
  | { readonly afterMessages: number; readonly part?: 'header' | 'half' | 'allButOne' }

/** What has passed in one direction of a connection. */
export type Passed = { readonly bytes: number; readonly messages: number }
export const NOTHING: Passed = { bytes: 0, messages: 0 }

/** An interruption that waits for the first connection that comes as far as its place. */
export class ArmedInterruption<Connection extends object> {
  readonly what: Interruption
  readonly fired = Promise.withResolvers<Connection>()
  hasFired = false
  readonly #before = new WeakMap<Connection, Passed>()

  constructor(what: Interruption) {
    this.what = what
  }

  /** Connections that are open already are counted from where they are, new ones from their first byte. */
  countFrom(connection: Connection, passed: Passed): void {
    this.#before.set(connection, passed)
  }

  /** How many bytes of the piece still pass where it comes to the place; undefined where it does not. */
  passing(connection: Connection, piece: Piece, passed: Passed): number | undefined {
    const before = this.#before.get(connection) ?? NOTHING
    const { at } = this.what
    if ('afterBytes' in at) return within(piece, before.bytes + at.afterBytes - passed.bytes)
    const next = before.messages + at.afterMessages
    if (at.part === undefined && at.afterMessages > 0)
      return piece.message === next - 1 ? within(piece, piece.messageLength - piece.offset) : undefined
    if (piece.message !== next) return undefined
    return within(piece, lengthOf(at.part, piece.messageLength) - piece.offset)
  }
}

function lengthOf(part: 'header' | 'half' | 'allButOne' | undefined, messageLength: number): number {
  switch (part) {
    case undefined:
      return 0
    case 'header':
      return 1
    case 'half':
      return messageLength >> 1
    case 'allButOne':
      return messageLength - 1
  }
}

function within({ bytes }: Piece, length: number): number | undefined {
  return length <= bytes.length ? Math.max(0, length) : undefined
}
