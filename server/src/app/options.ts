import type { Calls } from '../calls/calls.ts'
import type { Catalogue } from '../catalogue/operation.ts'
import type { Begin } from '../gateway/begin.ts'
import type { Pipeline } from '../gateway/pipeline.ts'
import type { Family } from '../http/families.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Outbound } from '../outbound/outbound.ts'
import type { Deliverers } from '../outbox/deliverer.ts'
import type { Log } from '../telemetry/log.ts'

export type Start = {
  readonly log: Log
  /** Gives up the start, which then fails. */
  readonly cancel: AbortSignal
  readonly clock?: Clock
  /** What is sold, in place of our own list. */
  readonly catalogue?: Catalogue
  /** What callers can reach on base_url, in place of the routes of what is sold. */
  readonly families?: (core: Core) => readonly Family[]
  /** Who delivers messages of the outbox, by kind, in place of our own. */
  readonly deliverers?: (core: DeliveryCore) => Deliverers
}

/** What a deliverer is made of. */
export type DeliveryCore = { readonly outbound: Outbound }

/** What an endpoint is made of. */
export type Core = { readonly begin: Begin; readonly end: Calls['end']; readonly run: Pipeline }
