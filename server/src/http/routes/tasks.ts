import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Begin } from '../../gateway/begin.ts'
import { Fault } from '../../kernel/fault.ts'
import { isId } from '../../kernel/ids.ts'
import type { Tasks } from '../../tasks/tasks.ts'
import { admit } from './admit.ts'
import { pageLimit } from './page-limit.ts'

type Parts = { readonly begin: Begin; readonly tasks: Tasks }

const page = z.strictObject({
  limit: pageLimit,
  before: z.string().refine(isId, 'must be the task_id that a page ended with').optional(),
})

type ById = { Params: { id: string } }

/** How a key looks after its tasks: polls, cancels and lists them. All of it is free, and counts as requests. */
export function addTasks(scope: FastifyInstance, { begin, tasks }: Parts): void {
  scope.get<ById>('/services/aigc/tasks/:id', async (request, reply) => {
    const { credentialId } = await admit(begin, 'tasks', request, reply)
    return { ...(await tasks.read(credentialId, request.params.id)), request_id: request.id }
  })

  scope.post<ById>('/services/aigc/tasks/:id/cancel', async (request, reply) => {
    const { credentialId } = await admit(begin, 'tasks', request, reply)
    return { ...(await tasks.cancel(credentialId, request.params.id)), request_id: request.id }
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
    return { data: listed.tasks, next_before: listed.next, request_id: request.id }
  })
}
