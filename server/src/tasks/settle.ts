import type { Ending } from '../calls/call.ts'
import { NO_USAGE } from '../calls/calls.ts'
import { endingOf } from '../gateway/judge.ts'
import { lossRoute } from '../gateway/loss-guard.ts'
import { type PriceDetail, priceOf } from '../gateway/record-detail.ts'
import type { HeldFor, ReportedTask } from '../gateway/task-kind.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Seal } from '../kernel/seal.ts'
import { type Counts, mostFor, type Terms, termsInText } from '../pricing/terms.ts'
import { timesOf } from './times.ts'

/** What an upstream says of a task that has ended. */
export type FinalReport = Extract<ReportedTask, { readonly state: 'SUCCEEDED' | 'FAILED' | 'CANCELED' }>

/** A task that has not been settled, with the prices that were kept when it began. */
type Held = {
  readonly id: Id
  readonly accountId: Id
  readonly model: string
  readonly slot: string
  readonly mode: Mode
  readonly terms: string
  readonly created_at: Date
}

type Settling = {
  readonly ending: Ending & Required<Pick<Ending, 'task'>>
  /** For its owner to look up. */
  readonly detail: PriceDetail
}

/**
 * How a task ends, by the upstream's word and by what was kept when it began: one that succeeded costs what it reports, one
 * that was canceled costs what it reports if anything, one that failed costs nothing.
 */
export function settlingOf(held: Held, report: FinalReport, seal: Seal): Settling {
  const { id, accountId } = held
  const { terms, most } = termsInText(held.terms)
  const counts = countsOf(terms, most, report)
  const measured = counts && { counts }
  const { loss, ...cost } = costOf(terms, most, report, counts)
  const times = timesOf(report.times, held.created_at.getTime())
  const task = { ...taskEnd(id, report, { terms, most }, seal), times }
  return {
    ending: {
      id,
      accountId,
      ...cost,
      task,
      route: held.slot,
      ...(loss && { loss: { ...loss, route: lossRoute(held.model, held) } }),
    },
    detail: priceOf(terms, { measured }),
  }
}

/** Undefined for a success of which nobody knows what it used. A failure or a cancellation that says nothing has used nothing. */
function countsOf(terms: Terms, most: Counts, report: FinalReport): Counts | undefined {
  const reported = report.state === 'FAILED' ? undefined : report.counts({ terms, most })
  return reported ?? (report.state === 'SUCCEEDED' ? undefined : terms.rates.map(() => 0n))
}

function costOf(
  terms: Terms,
  most: Counts,
  { state }: FinalReport,
  counts: Counts | undefined,
): ReturnType<typeof endingOf> {
  if (state === 'FAILED') return { amount: null, forgiven: false, usage: { ...NO_USAGE, executed: true, failed: true } }
  const held = { terms, mostCounts: most, most: mostFor(terms, most) }
  // What nobody can measure is given, at our loss.
  const isUnreadable = counts === undefined
  // One that was canceled has not failed: mostly its caller wished it so.
  const how = { forgiven: isUnreadable, failed: false, isUnreadable }
  return endingOf(held, counts && { counts }, how)
}

function taskEnd(id: Id, report: FinalReport, held: HeldFor, seal: Seal): NonNullable<Ending['task']> {
  if (report.state === 'FAILED') return { state: 'FAILED', code: report.code, message: report.message }
  if (report.state === 'CANCELED') return { state: 'CANCELED' }
  return { state: 'SUCCEEDED', result: report.result(id, held, seal) }
}
