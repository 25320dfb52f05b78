import type { Id } from '../kernel/ids.ts'
import type { Retries } from './backoff.ts'

export type Delivery = {
  /** The same at each attempt: receivers know a repetition by it. */
  readonly id: Id
  readonly destination: string
  readonly payload: unknown
  /** This one included. */
  readonly attempts: number
  readonly createdAt: Date
  /** Given up: the attempt counts as failed, whatever becomes of it. */
  readonly signal: AbortSignal
}

/** Delivers one kind of message. Given by kind in app/work.ts. */
export type Deliverer = {
  /** Done when the receiver has taken it. Whatever it throws is a failed attempt. */
  readonly deliver: (delivery: Delivery) => Promise<void>
  /** The longest attempt. Nobody else takes the message up before it is over, and a margin. */
  readonly timeoutMs?: number
  /** Attempts at once by one process, to one destination. */
  readonly atOnce?: number
  readonly retries?: Partial<Retries>
}

export type Deliverers = ReadonlyMap<string, Deliverer>

/** A failure that a deliverer explains. Its text is kept and shown to operators, so it holds nothing of the payload. */
export class DeliveryFailure extends Error {
  /** It would fail again, whenever: a dead letter at once. */
  readonly isFinal: boolean

  constructor(message: string, { isFinal = false, cause }: { isFinal?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.name = 'DeliveryFailure'
    this.isFinal = isFinal
  }
}
