import type { Operation } from '../catalogue/operation.ts'
import type { Caller } from '../identity/caller.ts'
import type { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Lease } from '../kernel/memory-budget.ts'
import { askOf } from '../limits/ask.ts'
import type { Window } from '../limits/window.ts'

/** A call that somebody wants, whoever asks: an HTTP client, an agent, or a task. */
export type CallRequest = {
  readonly id: Id
  readonly caller: Caller
  readonly operation: Operation
  /** The query string without its question mark, byte for byte. */
  readonly query: string
  readonly rawBody: Buffer | null
  /** Of a large body: what makes the request the same as another, worked out beside the event loop. */
  readonly digest?: string | undefined
  /** Reads the body as JSON, or throws the fault that says why it is none. */
  readonly readBody: () => unknown
  /** The most that the caller wants to pay, in decimal USD. */
  readonly maxCost: string | undefined
  /** `quote` to be told the price instead of making the call. */
  readonly costMode: string | undefined
  /** A quote that the call is to be charged by. */
  readonly quoteId: string | undefined
  /** The name of a header about money that is another gateway's. */
  readonly strange?: string | undefined
  readonly idempotencyKey: string | undefined
  /** The model that the path names, in protocols that have it there. */
  readonly model?: string
  /** Those of some other headers that the request has, by their names in lower case. */
  readonly headers: (names: readonly string[]) => Readonly<Record<string, string>>
  /** What is to become of a stream whose caller leaves; as its key says where left out. */
  readonly onDisconnect?: string | undefined
  /** What is held for it where it is a stream; as its key says where left out. */
  readonly hold?: string | undefined
  /** What is to become of it where its output limit does not fit into what there is; it is refused where left out. */
  readonly fit?: string | undefined
  /** For whom it is made, by a header; beats what the body says. */
  readonly endUser?: string | undefined
  /** What it is for, by a header: `team=search,run=42`. */
  readonly tags?: string | undefined
  /** The most output that it may have of each choice, because more did not fit. */
  readonly outputAtMost?: number | undefined
  /** Has it told when the caller leaves before it is answered, at once where it has left. Call off what comes back. */
  readonly whenLeft?: ((work: () => void) => () => void) | undefined
  /** Told how far the call has come, for whoever has to know what became of one that failed. */
  readonly progress?: Progress | undefined
  /** What the request holds of the process's memory, with room for its reply once that is reserved. */
  readonly memory: Lease
  /** The body that a fault has in the caller's protocol, for one that comes when the answer has begun. */
  readonly renderFault: (fault: Fault) => string
}

/** How far a call has come: by which name it asks for a model, whether there is room for its reply, and whether it has begun and may be sent. */
export type Progress = { model?: string | undefined; reserved?: boolean; begun?: boolean }

/** The limits that the call was admitted within. */
export function windowsOf({ caller, operation }: CallRequest): readonly Window[] {
  return askOf(caller.limits, operation.limits).windows
}
