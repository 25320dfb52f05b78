import type { Settlement, TaskEnd, Usage } from '../calls/call.ts'
import { type Calls, NO_USAGE } from '../calls/calls.ts'
import type { Caller } from '../identity/caller.ts'
import { formatUsd, type Nanos, ZERO } from '../kernel/money.ts'
import type { Held } from '../pricing/terms.ts'
import type { CallLine } from '../telemetry/call-lines.ts'
import type { Log } from '../telemetry/log.ts'
import { type CallRequest, windowsOf } from './call-request.ts'
import type { Growth, Slice } from './growth.ts'
import type { Outcome } from './judge.ts'
import { lossRoute } from './loss-guard.ts'
import type { Plan, Sent } from './plan.ts'
import { priceOf, runOf } from './record-detail.ts'
import type { Records } from './records.ts'
import type { Stopwatch } from './stopwatch.ts'
import type { Overrun } from './tell-loss.ts'

type Parts = {
  readonly end: Calls['end']
  /** Somebody has to hear of it: the upstream used more than was held, or what nobody can be charged for. */
  readonly overran: (overrun: Overrun) => void
  readonly records: Records
  readonly log: Pick<Log, 'calls'>
}

/** A call that was begun. */
export type Running = {
  readonly request: CallRequest
  readonly plan: Plan
  readonly held: Held
  readonly first: Pick<Slice, 'held'>
  readonly growth: Pick<Growth, 'steps'> | undefined
  readonly sent: Sent
  readonly times: Stopwatch
}

export type Settled = Pick<Outcome, 'ending' | 'measured' | 'fault'>

/** Ends a call, and keeps what is known of it. */
export type Settle = (running: Running, outcome: Settled, status: number, isHeard?: boolean) => Promise<Settlement>

export function createSettle({ end, overran, records, log }: Parts): Settle {
  return async (running, outcome, status, isHeard = true) => {
    const { request, plan, held, sent, times } = running
    const { id, caller, operation } = request
    const task = plan.task && notCreated(outcome)
    const { loss, ...judged } = outcome.ending
    const ending = {
      id,
      accountId: caller.accountId,
      ...judged,
      usage: plan.isFree ? uncounted(judged.usage) : judged.usage,
      route: lastSlotOf(sent),
      // The headers of a stream have left long before its end.
      ...(sent.outcome !== 'streaming' && {
        asked: { credentialId: caller.credentialId, windows: windowsOf(request) },
      }),
      ...(task && { task }),
      ...(loss && { loss: { ...loss, route: routeOf(plan, sent, caller) } }),
    }
    const settlement = await end(ending)
    times.note('settled')
    if (settlement.overrun > ZERO) overran({ id, operation: operation.id, amount: settlement.overrun, loss })
    // What goes to the caller only now, a whole answer or the end of a stream that had nothing before it, goes in this turn.
    if (isHeard) times.noteAs('firstByte', 'settled')
    const balance = { balance_after: formatUsd(settlement.free) }
    records.add(id, { ...runOf({ ...running, status }), ...priceOf(held.terms, outcome), ...balance })
    const isFailed = judged.usage.failed || status >= 400
    if (isFailed ? log.calls.tellsFailures : log.calls.tellsAll) {
      const line = lineOf(running, outcome, { status, charged: settlement.charged })
      if (isFailed) log.calls.failed(line, outcome.fault?.cause)
      else log.calls.ended(line)
    }
    return settlement
  }
}

function lineOf(
  { request: { id, caller, operation }, plan, sent, times }: Running,
  { fault }: Settled,
  { status, charged }: { readonly status: number; readonly charged: Nanos },
): CallLine {
  const last = sent.attempts.at(-1)
  return {
    request_id: id,
    account_id: caller.accountId,
    key_id: caller.credentialId,
    operation: operation.id,
    model: plan.model,
    upstream: last?.upstream,
    status,
    duration_ms: times.noted.settled ?? 0,
    cost_usd: formatUsd(charged),
    code: fault?.code,
    reason: last?.reason ?? undefined,
  }
}

/** Where the call went: the last that was asked decided. */
function lastSlotOf({ attempts }: Sent): string | undefined {
  return attempts.at(-1)?.slot
}

function routeOf({ sold }: Plan, sent: Sent, { mode }: Caller): string {
  return lossRoute(sold, { slot: lastSlotOf(sent) ?? 'none', mode })
}

/** The ledger has a row of what is free, and the report counts what can be billed. */
function uncounted({ failed, upstreamCost }: Usage): Usage {
  return { ...NO_USAGE, failed, upstreamCost }
}

/** The end of a task that no upstream took. */
function notCreated({ fault }: Settled): TaskEnd {
  const { code, message } = fault ?? { code: 'upstream_refused', message: 'The upstream did not take it.' }
  return { state: 'FAILED', code, message }
}
