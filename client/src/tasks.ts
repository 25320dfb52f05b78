import { requireWhole } from './checks.ts'
import { type Clock, sleep } from './clock.ts'
import type { FreeRoutes, Operations } from './contract.ts'
import { ConnectionError, FareboxError, RateLimitError, ServerError } from './errors.ts'
import type { CallOptions, RequestOptions } from './options.ts'
import { type Paged, paged } from './pages.ts'
import type { Result } from './result.ts'

export type Task = FreeRoutes['get_task']['answer']
export type TaskStatus = Task['output']['task_status']
export type ListedTasks = FreeRoutes['list_tasks']['answer']

export type WaitOptions = {
  /** Told of every look at the task. */
  readonly onProgress?: (progress: Progress) => void
  readonly signal?: AbortSignal
  /** How long to wait in all for a task that was created, in milliseconds. Five minutes by default; 0 looks once. */
  readonly timeoutMs?: number
}

export type Progress = { readonly status: TaskStatus; readonly elapsedMs: number; readonly task: Task }

/** The task ended without what was asked for, or nobody could wait any longer. */
export class TaskError extends FareboxError {
  readonly taskId: string
  /** As it was seen last; null where it could not be looked at. */
  readonly task: Task | null

  constructor(
    message: string,
    taskId: string,
    task: Task | null,
    details: ConstructorParameters<typeof FareboxError>[1],
  ) {
    super(message, details)
    this.taskId = taskId
    this.task = task
  }
}

export type Tasks = {
  /** Creates a video and waits until it is there. */
  readonly run: (
    input: Operations['video_synthesis']['input'],
    options?: CallOptions & WaitOptions,
  ) => Promise<Result<Task>>
  /** Waits until a task has succeeded. Throws a TaskError where it failed, was canceled, or took too long. */
  readonly wait: (taskId: string, options?: WaitOptions) => Promise<Result<Task>>
  readonly get: (taskId: string, options?: RequestOptions) => Promise<Result<Task>>
  /** Asks the provider to end it. What has ended stays as it is. */
  readonly cancel: (taskId: string, options?: RequestOptions) => Promise<Result<Task>>
  /** The newest first. */
  readonly list: (
    query?: { readonly limit?: number },
    options?: RequestOptions,
  ) => Paged<ListedTasks['data'][number], ListedTasks>
}

type Parts = {
  readonly clock: Clock
  readonly random: () => number
  readonly free: <Id extends keyof FreeRoutes>(
    id: Id,
    input: FreeRoutes[Id]['input'],
    options?: RequestOptions,
  ) => Promise<Result<FreeRoutes[Id]['answer']>>
  readonly create: (
    input: Operations['video_synthesis']['input'],
    options?: CallOptions,
  ) => Promise<Result<Operations['video_synthesis']['answer']>>
}

/** From one look to the next. The gateway takes two a second, and asks for three to five seconds. */
const LOOK_LEAST_MS = 3_000
const LOOK_MOST_MS = 5_000
const WAIT_MS = 300_000
const LOOK_TIMEOUT_MS = 30_000
/** What a look at the very end has all the same, so that it can be answered. */
const LAST_LOOK_MS = 1_000

export function createTasks({ clock, random, free, create }: Parts): Tasks {
  async function wait(taskId: string, options: WaitOptions = {}): Promise<Result<Task>> {
    const { onProgress, signal, timeoutMs = WAIT_MS } = options
    requireWhole({ timeoutMs }, 0)
    const beganMs = clock.nowMs()
    let seen: Task | null = null
    for (;;) {
      const lookedMs = clock.nowMs()
      const leftMs = Math.max(LAST_LOOK_MS, Math.floor(beganMs + timeoutMs - lookedMs))
      const found = await look(taskId, Math.min(LOOK_TIMEOUT_MS, leftMs), signal)
      if ('data' in found) {
        seen = found.data
        const status = seen.output.task_status
        onProgress?.({ status, elapsedMs: clock.nowMs() - beganMs, task: seen })
        if (status === 'SUCCEEDED') return found
        if (status === 'FAILED' || status === 'CANCELED') throw ended(found)
      }
      const paceMs = LOOK_LEAST_MS + (LOOK_MOST_MS - LOOK_LEAST_MS) * random()
      const nextMs = Math.max(lookedMs + paceMs, clock.nowMs() + ('data' in found ? 0 : (found.retryAfterMs ?? 0)))
      if (nextMs - beganMs > timeoutMs) throw late(taskId, seen, timeoutMs)
      await sleep(clock, nextMs - clock.nowMs(), signal)
    }
  }

  /** Sent once: what goes wrong on the way is no news of the task, and the next look is soon enough. */
  async function look(
    taskId: string,
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Result<Task> | FareboxError> {
    try {
      const once = { maxRetries: 0, timeoutMs, ...(signal && { signal }) }
      return await free('get_task', { task_id: taskId }, once)
    } catch (error) {
      const mayPass = [ConnectionError, RateLimitError, ServerError].some((kind) => error instanceof kind)
      if (mayPass && error instanceof FareboxError) return error
      throw error
    }
  }

  return {
    async run(input, { onProgress, timeoutMs, ...options } = {}) {
      const { data } = await create(input, options)
      const { signal } = options
      const how = {
        ...(onProgress && { onProgress }),
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(signal && { signal }),
      }
      return wait(data.output.task_id, how)
    },
    wait,
    get: (taskId, options) => free('get_task', { task_id: taskId }, options),
    cancel: (taskId, options) => free('cancel_task', { task_id: taskId }, options),
    list: (query = {}, options = {}) =>
      paged({
        read: (before) => free('list_tasks', { ...query, ...(before !== undefined && { before }) }, options),
        itemsOf: ({ data }) => data,
        nextOf: ({ next_before }) => next_before,
      }),
  }
}

function ended({ data, cost, requestId }: Result<Task>): TaskError {
  const { task_status, code, message } = data.output
  const isFailed = task_status === 'FAILED'
  const said = isFailed ? `The task failed: ${message ?? code ?? 'no reason was given'}` : 'The task was canceled.'
  const members = { task_code: code }
  return new TaskError(said, data.output.task_id, data, {
    code: isFailed ? 'task_failed' : 'task_canceled',
    cost: cost ?? undefined,
    requestId,
    members,
  })
}

function late(taskId: string, task: Task | null, timeoutMs: number): TaskError {
  const state = task === null ? 'could not be looked at' : `is ${task.output.task_status}`
  return new TaskError(`The task ${taskId} ${state} after ${timeoutMs} ms.`, taskId, task, { code: 'task_timeout' })
}
