import type { Ending } from '../calls/call.ts'
import { NO_USAGE } from '../calls/calls.ts'
import { endingOf } from '../gateway/judge.ts'
import { lossRoute } from '../gateway/loss-guard.ts'
import { boundToTask } from '../gateway/plans/video.ts'
import { detailOf } from '../gateway/record-detail.ts'
import type { RecordDetail } from '../gateway/records.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Seal } from '../kernel/seal.ts'
import { Secret } from '../kernel/secret.ts'
import { videoCounts } from '../pricing/by-second.ts'
import { type Counts, mostFor, type Terms, termsInText } from '../pricing/terms.ts'
import type { TaskReport } from '../protocols/video.ts'
import { timesOf } from './times.ts'

/** What an upstream says of a task that has ended. */
export type FinalReport = Extract<TaskReport, { readonly state: 'SUCCEEDED' | 'FAILED' | 'CANCELED' }>

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
  readonly detail: RecordDetail
}

/**
 * How a task ends, by the upstream's word and by what was kept when it began: one that succeeded costs what it reports, one
 * that was canceled costs what it reports if anything, one that failed costs nothing.
 */
export function settlingOf(held: Held, report: FinalReport, seal: Seal): Settling {
  const { id, accountId, slot } = held
  const { terms, most } = termsInText(held.terms)
  const counts = countsOf(terms, most, report)
  const measured = counts && { counts }
  const attempts = [{ slot, outcome: 'answered', status: 200, reason: null }] as const
  const { loss, ...cost } = costOf(terms, most, report, counts)
  const times = timesOf(report.times, held.created_at.getTime())
  const task = { ...taskEnd(id, report, { terms, most, seal }), times }
  return {
    ending: { id, accountId, ...cost, task, ...(loss && { loss: { ...loss, route: lossRoute(held.model, held) } }) },
    detail: detailOf({ terms, sent: { attempts }, outcome: { measured }, status: 200, timeline: {} }),
  }
}

/** Undefined for a video whose length nobody knows. A failure or a cancellation that says nothing has used nothing. */
function countsOf(terms: Terms, most: Counts, report: FinalReport): Counts | undefined {
  const reported = report.state === 'FAILED' ? undefined : videoCounts(terms, most, report.usage)
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

type Kept = { readonly terms: Terms; readonly most: Counts; readonly seal: Seal }

function taskEnd(id: Id, report: FinalReport, { terms, most, seal }: Kept): NonNullable<Ending['task']> {
  if (report.state === 'FAILED') return { state: 'FAILED', code: report.code, message: report.message }
  if (report.state === 'CANCELED') return { state: 'CANCELED' }
  const { videos, seconds = secondsAsked(most, videos), resolution = resolutionAsked(terms, most) } = report.usage
  const videoUrl = seal.seal(new Secret(report.videoUrl), boundToTask(id, 'video_url'))
  return { state: 'SUCCEEDED', videoUrl, seconds, videos, resolution }
}

/** What an upstream does not say is as it was held for, in milliseconds of all videos together. */
function secondsAsked(most: Counts, videos: number): number {
  return Number(most.reduce((sum, count) => sum + count, 0n)) / 1_000 / Math.max(1, videos)
}

function resolutionAsked({ rates }: Terms, most: Counts): number | null {
  return Number.parseInt(rates[most.findIndex((count) => count > 0n)]?.unit ?? '', 10) || null
}
