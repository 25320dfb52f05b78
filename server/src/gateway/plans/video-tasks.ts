import { z } from 'zod'
import type { Id } from '../../kernel/ids.ts'
import { Secret } from '../../kernel/secret.ts'
import { videoCounts } from '../../pricing/by-second.ts'
import type { Counts, Terms } from '../../pricing/terms.ts'
import { reportIn, VIDEO, type VideoUsage } from '../../protocols/video.ts'
import type { Sealed } from '../../storage/reseal.ts'
import type { TaskResult } from '../../storage/task-results.ts'
import type { HeldFor, TaskKind } from '../task-kind.ts'

/** What a prompt or the address of a video is sealed for. */
export function boundToTask(id: Id, what: 'prompt' | 'video_url'): string {
  return `task ${id} ${what}`
}

/** What is kept sealed of a video's task. */
export const SEALED_IN_TASKS: readonly Sealed[] = (['prompt', 'video_url'] as const).map((column) => ({
  what: column === 'prompt' ? 'prompts of tasks' : 'addresses of videos',
  table: 'tasks',
  key: 'id',
  column,
  boundTo: (id) => boundToTask(id, column),
}))

/** The columns of its result. */
const result = z.object({
  video_url: z.instanceof(Buffer).nullable(),
  seconds: z.number().nullable(),
  videos: z.int().nullable(),
  resolution: z.int().nullable(),
}) satisfies z.ZodType<TaskResult>

/** Tasks whose operation makes videos. */
export const VIDEO_TASKS: TaskKind = {
  credentialHeader: VIDEO.credentialHeader,
  taskTarget: VIDEO.taskTarget,
  cancelTarget: VIDEO.cancelTarget,
  reportIn(json, name) {
    const report = reportIn(json, name)
    if (report?.state !== 'SUCCEEDED' && report?.state !== 'CANCELED') return report
    const { times, usage } = report
    const counts = ({ terms, most }: HeldFor) => videoCounts(terms, most, usage)
    if (report.state === 'CANCELED') return { state: report.state, times, counts }
    const address = new Secret(report.videoUrl)
    return {
      state: report.state,
      times,
      counts,
      result: (id, held, seal) => ({
        video_url: seal.seal(address, boundToTask(id, 'video_url')),
        ...sizeOf(usage, held),
      }),
    }
  },
  made(row, seal) {
    const { video_url, seconds, videos, resolution } = result.parse(row)
    const opened = (sealed: Buffer | null, what: 'prompt' | 'video_url') =>
      sealed === null ? '' : seal.open(sealed, boundToTask(row.id, what)).reveal()
    return {
      output: { video_url: opened(video_url, 'video_url'), orig_prompt: opened(row.prompt, 'prompt') },
      usage: { output_video_duration: seconds, video_count: videos, SR: resolution },
    }
  },
}

/** What an upstream does not say is as it was held for. */
function sizeOf({ videos, seconds, resolution }: VideoUsage, { terms, most }: HeldFor): Omit<TaskResult, 'video_url'> {
  return {
    seconds: seconds ?? secondsAsked(most, videos),
    videos,
    resolution: resolution ?? resolutionAsked(terms, most),
  }
}

/** Of each; it is held for in milliseconds of all videos together. */
function secondsAsked(most: Counts, videos: number): number {
  return Number(most.reduce((sum, count) => sum + count, 0n)) / 1_000 / Math.max(1, videos)
}

function resolutionAsked({ rates }: Terms, most: Counts): number | null {
  return Number.parseInt(rates[most.findIndex((count) => count > 0n)]?.unit ?? '', 10) || null
}
