import { z } from 'zod'
import { boundToTask } from '../gateway/plans/video.ts'
import type { Seal } from '../kernel/seal.ts'
import type { Sealed } from '../storage/reseal.ts'

/** A row of the tasks, as far as its caller may see it. */
export const taskRow = z.object({
  id: z.string(),
  model: z.string(),
  state: z.enum(['CREATING', 'PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELED', 'UNKNOWN']),
  upstream_id: z.string().nullable(),
  slot: z.string().nullable(),
  mode: z.enum(['live', 'test']).nullable(),
  upstream_task: z.string().nullable(),
  prompt: z.instanceof(Buffer).nullable(),
  video_url: z.instanceof(Buffer).nullable(),
  seconds: z.number().nullable(),
  videos: z.int().nullable(),
  resolution: z.int().nullable(),
  code: z.string().nullable(),
  message: z.string().nullable(),
  created_at: z.date(),
  scheduled_at: z.date().nullable(),
  ended_at: z.date().nullable(),
})

export type TaskRow = z.output<typeof taskRow>

/** What is kept sealed of it. */
export const SEALED_IN_TASKS: readonly Sealed[] = (['prompt', 'video_url'] as const).map((column) => ({
  what: column === 'prompt' ? 'prompts of tasks' : 'addresses of videos',
  table: 'tasks',
  key: 'id',
  column,
  boundTo: (id) => boundToTask(id, column),
}))

/** The columns of it. */
export const TASK_COLUMNS = Object.keys(taskRow.shape)

/** The task as the public contract has it: those members that belong to its state, and no others. */
export function taskResource(row: TaskRow, seal: Pick<Seal, 'open'>) {
  const { id, state } = row
  // That we do not know yet whether an upstream has it is no news to its caller.
  const output = { task_id: id, task_status: state === 'CREATING' ? 'PENDING' : state }
  if (state === 'UNKNOWN') return { output }
  const submitted = { ...output, submit_time: timeText(row.created_at) }
  const scheduled = row.scheduled_at === null ? submitted : { ...submitted, scheduled_time: timeText(row.scheduled_at) }
  if (row.ended_at === null) return { output: scheduled }
  const ended = { ...scheduled, end_time: timeText(row.ended_at) }
  if (state === 'FAILED') return { output: { ...ended, code: row.code, message: row.message } }
  if (state !== 'SUCCEEDED') return { output: ended }
  const opened = (sealed: Buffer | null, what: 'prompt' | 'video_url') =>
    sealed === null ? '' : seal.open(sealed, boundToTask(id, what)).reveal()
  return {
    output: { ...ended, video_url: opened(row.video_url, 'video_url'), orig_prompt: opened(row.prompt, 'prompt') },
    usage: { output_video_duration: row.seconds, video_count: row.videos, SR: row.resolution },
  }
}

/** What is told of an id that nobody here has. */
export function unknownTask(id: string) {
  return { output: { task_id: id, task_status: 'UNKNOWN' } }
}

/** `YYYY-MM-DD HH:MM:SS.mmm`, in UTC. */
function timeText(time: Date): string {
  return time.toISOString().replace('T', ' ').slice(0, -1)
}
