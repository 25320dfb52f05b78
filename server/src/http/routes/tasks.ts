import type { FastifyInstance, FastifyReply } from 'fastify'
import type pg from 'pg'
import { z } from 'zod'
import { answer } from '../../contracts/answer.ts'
import { queryParameters } from '../../contracts/query-parameters.ts'
import { refusalsOfFree } from '../../contracts/refusals.ts'
import type { ContractRoute } from '../../contracts/route.ts'
import type { Begin } from '../../gateway/begin.ts'
import type { HeaderNames } from '../../gateway/header-names.ts'
import { inputFault } from '../../gateway/input-fault.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/fault.ts'
import { isId } from '../../kernel/ids.ts'
import { formatUsd } from '../../kernel/money.ts'
import type { SeenTask, TaskList, Tasks } from '../../tasks/tasks.ts'
import { createAdmitToTasks } from './admit-to-tasks.ts'
import { idInPath } from './id-in-path.ts'
import { pageLimit } from './page-limit.ts'
import { whoseRecords } from './whose-records.ts'

type Parts = {
  readonly begin: Begin
  readonly tasks: Tasks
  readonly pool: pg.Pool
  readonly time: Pick<Clock, 'nowMs'>
  readonly headerNames: Pick<HeaderNames, 'taskCost'>
}

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

const TASK = idInPath('The task_id that creating the task has told.', 'task_id')

/** Where tasks are looked after, for contracts. */
export function taskRoutes({ taskCost }: Pick<HeaderNames, 'taskCost'>): readonly ContractRoute[] {
  const common = { tag: 'tasks', access: 'credential' } as const
  return [
    {
      ...common,
      operationId: 'get_task',
      method: 'GET',
      path: '/apis/v1/services/aigc/tasks/{task_id}',
      summary: 'How a task stands',
      description: 'Poll every 3 to 5 seconds, at most twice a second. One that is unknown here is told as `UNKNOWN`.',
      parameters: [TASK],
      answers: { 200: answer('The task.', oneTask, [taskCost]) },
      refusals: refusalsOfFree('data'),
    },
    {
      ...common,
      operationId: 'cancel_task',
      method: 'POST',
      path: '/apis/v1/services/aigc/tasks/{task_id}/cancel',
      summary: 'Ask the provider to end a task; one that has ended stays as it is',
      parameters: [TASK],
      answers: { 200: answer('The task.', oneTask, [taskCost]) },
      refusals: refusalsOfFree('data', { name: 'cancel_task', codes: CANCELING }),
    },
    {
      ...common,
      operationId: 'get_task_by_query',
      method: 'GET',
      path: '/apis/v1/services/aigc/tasks',
      summary: 'Refused: a task_id belongs into the path',
      answers: {},
      refusals: refusalsOfFree('data', { name: 'by_query', codes: ['unsupported_uri'] }),
    },
    {
      ...common,
      operationId: 'list_tasks',
      method: 'GET',
      path: '/apis/v1/services/aigc/video-generation/tasks',
      summary: 'Tasks of this key, the newest first',
      parameters: queryParameters(page),
      answers: { 200: answer('A page of tasks.', tasks) },
      refusals: refusalsOfFree('data'),
    },
  ]
}

/** The provider is asked. */
const CANCELING = [
  'task_not_cancelable',
  'upstream_rate_limit',
  'upstream_transport',
  'upstream_unreachable',
  'managed_upstream_transport',
  'managed_upstream_unreachable',
  'upstream_account',
] as const

type ById = { Params: { id: string } }

/** How a key looks after its tasks: polls, cancels and lists them. All of it is free, and counts as requests. */
export function addTasks(scope: FastifyInstance, { begin, tasks, pool, time, headerNames }: Parts): void {
  const admitted = createAdmitToTasks({ begin, pool, time })

  /** The contract says which members a task has. What it cost is beside it, and not the cost of this answer. */
  function tell({ resource, cost }: SeenTask, reply: FastifyReply) {
    if (cost !== undefined) reply.header(headerNames.taskCost, formatUsd(cost))
    return { ...resource, request_id: reply.request.id }
  }

  scope.get<ById>('/services/aigc/tasks/:id', { exposeHeadRoute: true }, async (request, reply) => {
    const caller = await admitted(request, reply)
    if (request.params.id === '') throw new Fault('unsupported_uri')
    return tell(await tasks.read(await whoseRecords(pool, caller), request.params.id), reply)
  })

  scope.post<ById>('/services/aigc/tasks/:id/cancel', async (request, reply) => {
    const { credentialId } = await admitted(request, reply)
    return tell(await tasks.cancel(credentialId, request.params.id), reply)
  })

  // A task's id belongs into the path. Here nothing is listed, so that nobody takes a list for the task that was meant.
  scope.get('/services/aigc/tasks', async (request, reply) => {
    await admitted(request, reply)
    throw new Fault('unsupported_uri')
  })

  scope.get('/services/aigc/video-generation/tasks', { exposeHeadRoute: true }, async (request, reply) => {
    const caller = await admitted(request, reply)
    const { success, data, error } = page.safeParse(request.query)
    if (!success) throw inputFault(error, request.query)
    const { limit, before } = data
    const listed = await tasks.list(await whoseRecords(pool, caller), {
      limit,
      ...(before !== undefined && { before }),
    })
    return { ...shownTasks(listed), request_id: request.id }
  })
}

/** A page of tasks, each with what it cost. */
export function shownTasks({ tasks, next }: TaskList) {
  const data = tasks.map(({ resource, cost }) => ({
    ...resource,
    cost_usd: cost === undefined ? null : formatUsd(cost),
  }))
  return { data, next_before: next }
}
