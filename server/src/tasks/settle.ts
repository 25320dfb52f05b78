import type { Ending } from '../calls/call.ts'
import { NO_USAGE } from '../calls/calls.ts'
import { endingOf } from '../gateway/judge.ts'
import { boundToTask } from '../gateway/plan-video.ts'
import { mostFor, termsInText } from '../gateway/terms.ts'
import { videoCounts } from '../gateway/video-pricing.ts'
import type { Id } from '../kernel/ids.ts'
import type { Seal } from '../kernel/seal.ts'
import { Secret } from '../kernel/secret.ts'
import type { TaskReport, VideoUsage } from '../upstreams/protocols/video.ts'

/** What an upstream says of a task that has ended. */
export type FinalReport = Extract<TaskReport, { readonly state: 'SUCCEEDED' | 'FAILED' | 'CANCELED' }>

type Held = { readonly id: Id; readonly accountId: Id; readonly terms: string }

type TaskEnding = Ending & Required<Pick<Ending, 'task'>>

/**
 * How a task ends, by the upstream's word and by the prices that were kept when it began: one that succeeded costs what it
 * reports, one that was canceled costs what it reports if anything, one that failed costs nothing.
 */
export function taskEnding(held: Held, report: FinalReport, seal: Seal): TaskEnding {
  const { id, accountId } = held
  if (report.state === 'FAILED') {
    const usage = { ...NO_USAGE, executed: true, failed: true }
    return { id, accountId, amount: null, forgiven: false, usage, task: report }
  }
  const { usage } = report
  const ending = costOf(held.terms, usage, report.state)
  if (report.state === 'CANCELED') return { id, accountId, ...ending, task: { state: 'CANCELED' } }
  const videoUrl = seal.seal(new Secret(report.videoUrl), boundToTask(id, 'video_url'))
  const { seconds = null, videos, resolution = resolutionHeldFor(held.terms) } = usage
  return { id, accountId, ...ending, task: { state: 'SUCCEEDED', videoUrl, seconds, videos, resolution } }
}

/** What an upstream does not say is as it was asked for. */
function resolutionHeldFor(text: string): number | null {
  const { terms, most } = termsInText(text)
  return Number.parseInt(terms.rates[most.findIndex((count) => count > 0n)]?.unit ?? '', 10) || null
}

function costOf(text: string, usage: VideoUsage, state: 'SUCCEEDED' | 'CANCELED') {
  const { terms, most: mostCounts } = termsInText(text)
  const held = { terms, mostCounts, most: mostFor(terms, mostCounts) }
  const counts = videoCounts(terms, mostCounts, usage)
  // A cancellation that says nothing has used nothing. A video whose length nobody knows is given, at our loss.
  const measured = counts ?? (state === 'CANCELED' ? terms.rates.map(() => 0n) : undefined)
  return endingOf(held, measured && { counts: measured }, {
    forgiven: measured === undefined,
    failed: state === 'CANCELED',
  })
}
