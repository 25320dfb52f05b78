import { z } from 'zod'
import type { TaskKind } from '../gateway/task-kind.ts'
import type { Seal } from '../kernel/seal.ts'
import { RESULT_COLUMNS } from '../storage/task-results.ts'

/** A row of the tasks, as far as its caller may see it. What else stands in it is the result, which its operation reads. */
export const taskRow = z.looseObject({
  id: z.string(),
  model: z.string(),
  state: z.enum(['CREATING', 'PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELED', 'UNKNOWN']),
  upstream_id: z.string().nullable(),
  slot: z.string().nullable(),
  mode: z.enum(['live', 'test']).nullable(),
  upstream_task: z.string().nullable(),
  prompt: z.instanceof(Buffer).nullable(),
  code: z.string().nullable(),
  message: z.string().nullable(),
  created_at: z.date(),
  scheduled_at: z.date().nullable(),
  ended_at: z.date().nullable(),
})

export type TaskRow = z.output<typeof taskRow>

/** The columns of it. */
export const TASK_COLUMNS = [...Object.keys(taskRow.shape), ...RESULT_COLUMNS.map(({ column }) => column)]

/** The task as the public contract has it: those members that belong to its state, and no others. */
export function taskResource(row: TaskRow, { made }: Pick<TaskKind, 'made'>, seal: Pick<Seal, 'open'>) {
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
  const { output: own, usage } = made(row, seal)
  return { output: { ...ended, ...own }, usage }
}

/** What is told of an id that nobody here has. */
export function unknownTask(id: string) {
  return { output: { task_id: id, task_status: 'UNKNOWN' } }
}

/** `YYYY-MM-DD HH:MM:SS.mmm`, in UTC. */
function timeText(time: Date): string {
  return time.toISOString().replace('T', ' ').slice(0, -1)
}
