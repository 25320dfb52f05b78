import type { Evidence } from '../calls/call.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, NANOS_PER_USD, type Nanos, nanos } from '../kernel/money.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'

export type Overrun = {
  readonly id: Id
  readonly operation: string
  readonly amount: Nanos
  /** For what part of it there is evidence; the rest is presumed. */
  readonly loss?: Evidence | undefined
}

type Parts = { readonly metrics: Pick<Metrics, 'overrunUsd' | 'lossUsd'>; readonly log: Pick<Log, 'warn'> }

/** Somebody has to hear of it: the upstream used more than was held, or what nobody can be charged for. */
export function createTellLoss({ metrics, log }: Parts): (overrun: Overrun) => void {
  return ({ id, operation, amount, loss }) => {
    metrics.overrunUsd.inc({ operation }, asNumber(amount))
    const evidenced = loss === undefined ? 0n : loss.nanos < amount ? loss.nanos : amount
    if (loss !== undefined)
      metrics.lossUsd.inc({ kind: loss.claim === null ? 'unreadable' : 'reported' }, asNumber(evidenced))
    tellPresumed(metrics, nanos(amount - evidenced))
    log.warn('an upstream cost us more than was charged', { request_id: id, operation, amount: formatUsd(amount) })
  }
}

/** Loss that nothing is known of but that it may have been. */
export function tellPresumed({ lossUsd }: Pick<Metrics, 'lossUsd'>, amount: Nanos): void {
  if (amount > 0n) lossUsd.inc({ kind: 'presumed' }, asNumber(amount))
}

function asNumber(amount: bigint): number {
  return Number(amount) / Number(NANOS_PER_USD)
}
