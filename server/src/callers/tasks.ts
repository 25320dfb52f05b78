import { z } from 'zod'
import { pageLimit } from '../api/query-forms.ts'
import { Fault } from '../kernel/fault.ts'
import { isId } from '../kernel/ids.ts'
import { formatUsd } from '../kernel/money.ts'
import type { SeenTask, TaskList } from '../tasks/tasks.ts'
import type { CallerParts } from './parts.ts'
import { type CallerRequest, type CallerRoute, forAgents, forKey, type KeyAccess } from './route.ts'
import { whoseRecords } from './whose-records.ts'

const page = z.strictObject({
  limit: pageLimit,
  before: z
    .string()
    .refine(isId, 'must be the task_id that a page ended with')
    .optional()
    .meta({ description: 'The next_before of the page before.' }),
})

const time = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\.\d{3}$/)
  .optional()
const task = z.strictObject({
  output: z.strictObject({
    task_id: z.string(),
    task_status: z.enum(['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELED', 'UNKNOWN']),
    submit_time: time,
    scheduled_time: time,
    end_time: time,
    video_url: z.string().optional().meta({ description: 'Of a task that succeeded. It works for a few hours.' }),
    orig_prompt: z.string().optional(),
    code: z.string().optional().meta({ description: 'Of a task that failed.' }),
    message: z.string().optional().meta({ description: 'Of a task that failed.' }),
  }),
  usage: z
    .strictObject({ output_video_duration: z.number(), video_count: z.int(), SR: z.int().nullable() })
    .optional()
    .meta({ description: 'Of a task that succeeded.' }),
})
const oneTask = task.extend({ request_id: z.string() }).meta({ id: 'Task' })

/** What creating one answers. */
export const createdTask = z.looseObject({
  output: z.looseObject({ task_id: z.string(), task_status: z.enum(['PENDING', 'RUNNING']) }),
  request_id: z.string(),
})
/** One of a list, with what it cost. */
export const listedTask = task.extend({ cost_usd: z.string().nullable() })
const tasks = z.strictObject({
  data: z.array(listedTask),
  next_before: z.string().nullable(),
  request_id: z.string(),
})

const TASKS = '/apis/v1/services/aigc/tasks'
/** What all have in common. Those of a workspace that is being closed run on, and are charged. */
const COMMON = { tag: 'tasks', counts: 'tasks', whileClosing: true } as const satisfies Partial<KeyAccess> & {
  tag: string
}
const ONE = {
  params: { task_id: 'The task_id that creating the task has told.' },
  answer: { description: 'The task.', body: oneTask },
  answerHeaders: ['taskCost'],
} as const
const taskId = z.strictObject({ task_id: z.string().min(1).max(200).describe('As video_synthesis gave it') })

/** How a key looks after its tasks: polls, cancels and lists them. */
export const TASK_ROUTES: readonly CallerRoute[] = [
  forKey({
    ...COMMON,
    ...ONE,
    operationId: 'get_task',
    method: 'GET',
    path: `${TASKS}/{task_id}`,
    summary: 'How a task stands',
    description: 'Poll every 3 to 5 seconds, at most twice a second. One that is unknown here is told as `UNKNOWN`.',
    agents: forAgents({
      id: 'get_video_task',
      summary: 'See whether a video is ready, and get its address',
      asks: `video clip status ready done finished progress poll check download result url link task state wait still
        rendering where is my generated did it fail watch`,
      example: { task_id: '<task_id>' },
      category: 'video',
      input: taskId,
    }),
    async run(parts, asked) {
      const { task_id: id = '' } = asked.params
      if (id === '') throw new Fault('unsupported_uri')
      return replyOf(parts, asked, await parts.tasks.read(await whoseRecords(parts.pool, asked.caller), id))
    },
  }),
  forKey({
    ...COMMON,
    ...ONE,
    operationId: 'cancel_task',
    method: 'POST',
    path: `${TASKS}/{task_id}/cancel`,
    summary: 'Ask the provider to end a task; one that has ended stays as it is',
    refusesAs: 'cancel_task',
    // The provider is asked.
    codes: [
      ...(['task_not_cancelable', 'upstream_rate_limit', 'upstream_transport', 'upstream_unreachable'] as const),
      ...(['managed_upstream_transport', 'managed_upstream_unreachable', 'upstream_account'] as const),
    ],
    agents: forAgents({
      id: 'cancel_video_task',
      summary: 'Cancel a video that is still waiting',
      asks: 'cancel stop abort kill end video clip task job rendering generation no longer want changed my mind undo',
      example: { task_id: '<task_id>' },
      category: 'video',
      input: taskId,
    }),
    async run(parts, asked) {
      const { task_id: id = '' } = asked.params
      return replyOf(parts, asked, await parts.tasks.cancel(asked.caller.credentialId, id))
    },
  }),
  // A task's id belongs into the path. Here nothing is listed, so that nobody takes a list for the task that was meant.
  forKey({
    ...COMMON,
    operationId: 'get_task_by_query',
    method: 'GET',
    path: TASKS,
    summary: 'Refused: a task_id belongs into the path',
    refusesAs: 'by_query',
    codes: ['unsupported_uri'],
    answer: { description: 'None.', body: z.never() },
    async run() {
      throw new Fault('unsupported_uri')
    },
  }),
  forKey({
    ...COMMON,
    operationId: 'list_tasks',
    method: 'GET',
    path: '/apis/v1/services/aigc/video-generation/tasks',
    summary: 'Tasks of this key, the newest first',
    query: page,
    answer: { description: 'A page of tasks.', body: tasks },
    agents: forAgents({
      id: 'list_video_tasks',
      summary: 'List the videos that this key has asked for, with what each cost',
      asks: `videos clips all my tasks jobs history earlier previous past recent made generated which list show what
        pending running queue`,
      example: {},
      category: 'video',
      input: page.extend({ limit: z.int().min(1).max(100).default(20) }),
    }),
    async run({ tasks, pool }, { id, caller, query: { limit, before } }) {
      const listed = await tasks.list(await whoseRecords(pool, caller), {
        limit,
        ...(before !== undefined && { before }),
      })
      return { body: { ...shownTasks(listed), request_id: id } }
    },
  }),
]

/** The contract says which members a task has. What it cost is beside it, and not the cost of this answer. */
function replyOf({ headerNames }: CallerParts, { id }: Pick<CallerRequest, 'id'>, { resource, cost }: SeenTask) {
  return {
    body: { ...shown(resource), request_id: id },
    ...(cost !== undefined && { headers: { [headerNames.taskCost]: formatUsd(cost) } }),
  }
}

/** A page of tasks, each with what it cost. */
export function shownTasks({ tasks, next }: TaskList) {
  const data = tasks.map(({ resource, cost }) => ({
    ...shown(resource),
    cost_usd: cost === undefined ? null : formatUsd(cost),
  }))
  return { data, next_before: next }
}

/** Members of a kind of task are known where it is made. */
const shown = (resource: SeenTask['resource']) => resource as z.input<typeof task>
