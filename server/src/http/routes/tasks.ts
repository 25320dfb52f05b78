import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import type { Begin } from '../../gateway/begin.ts'
import type { HeaderNames } from '../../gateway/header-names.ts'
import { Fault } from '../../kernel/fault.ts'
import { isId } from '../../kernel/ids.ts'
import { formatUsd } from '../../kernel/money.ts'
import type { SeenTask, TaskList, Tasks } from '../../tasks/tasks.ts'
import { admit } from './admit.ts'
import { pageLimit } from './page-limit.ts'

type Parts = {
  readonly begin: Begin
  readonly tasks: Tasks
  readonly headerNames: Pick<HeaderNames, 'taskCost'>
}

const page = z.strictObject({
  limit: pageLimit,
  before: z.string().refine(isId, 'must be the task_id that a page ended with').optional(),
})

type ById = { Params: { id: string } }

/** How a key looks after its tasks: polls, cancels and lists them. All of it is free, and counts as requests. */
export function addTasks(scope: FastifyInstance, { begin, tasks, headerNames }: Parts): void {
  /** The contract says which members a task has. What it cost is beside it, and not the cost of this answer. */
  function tell({ resource, cost }: SeenTask, reply: FastifyReply) {
    if (cost !== undefined) reply.header(headerNames.taskCost, formatUsd(cost))
    return { ...resource, request_id: reply.request.id }
  }

  scope.get<ById>('/services/aigc/tasks/:id', async (request, reply) => {
    const { credentialId } = await admit(begin, 'tasks', request, reply)
    if (request.params.id === '') throw new Fault('unsupported_uri')
    return tell(await tasks.read(credentialId, request.params.id), reply)
  })

  scope.post<ById>('/services/aigc/tasks/:id/cancel', async (request, reply) => {
    const { credentialId } = await admit(begin, 'tasks', request, reply)
    return tell(await tasks.cancel(credentialId, request.params.id), reply)
  })

  // A task's id belongs into the path. Here nothing is listed, so that nobody takes a list for the task that was meant.
  scope.get('/services/aigc/tasks', async (request, reply) => {
    await admit(begin, 'tasks', request, reply)
    throw new Fault('unsupported_uri')
  })

  scope.get('/services/aigc/video-generation/tasks', async (request, reply) => {
    const { credentialId } = await admit(begin, 'tasks', request, reply)
    const { success, data, error } = page.safeParse(request.query)
    if (!success) throw new Fault('invalid_request', { detail: z.prettifyError(error).slice(0, 500) })
    const { limit, before } = data
    const listed = await tasks.list(credentialId, { limit, ...(before !== undefined && { before }) })
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
