import { Worker } from 'node:worker_threads'

/** A thread of its own for what would keep the one that serves calls for too long. It does one task after the other. */
export type Thread<Task, Result> = {
  readonly run: (task: Task) => Promise<Ran<Result>>
  /** Ends the thread. Nobody waits for what it was at. */
  readonly close: () => Promise<void>
}

export type Ran<Result> = { readonly result: Result } | { readonly missed: Missed }

/** Why a task has no result. */
export type Missed = { readonly reason: 'deadline' | 'queue_full' | 'failed' | 'closed'; readonly cause?: unknown }

type Options = {
  /** What it runs: a module that answers each task that it is sent with a result. */
  readonly file: URL
  /** How many tasks wait at the most. */
  readonly queueMost: number
  /** How long a task waits and runs at the most, where that is bounded. */
  readonly deadlineMs?: number
}

type Waiting<Task, Result> = {
  readonly task: Task
  readonly tell: (ran: Ran<Result>) => void
  readonly timer: NodeJS.Timeout | undefined
}

const HEAP_MOST_MB = 512

/** It starts when it is first needed, and again after it has failed. */
export function createThread<Task, Result>({ file, queueMost, deadlineMs }: Options): Thread<Task, Result> {
  const queue: Waiting<Task, Result>[] = []
  let running: Waiting<Task, Result> | undefined
  let worker: Worker | undefined
  let isClosed = false

  function start(): Worker {
    const started = new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MOST_MB } })
    started.on('message', (result: Result) => {
      if (started === worker) settle({ result })
    })
    // Without a listener the error would end the process.
    started.on('error', (cause) => {
      if (started === worker) abandon({ reason: 'failed', cause })
    })
    return started
  }

  function next(): void {
    if (running !== undefined) return
    running = queue.shift()
    if (running === undefined) {
      // A thread that has nothing to do keeps no process alive.
      worker?.unref()
      return
    }
    worker ??= start()
    worker.ref()
    worker.postMessage(running.task)
  }

  function settle(ran: Ran<Result>): void {
    if (running === undefined) return
    tell(running, ran)
    running = undefined
    next()
  }

  /** Gives up what is being done, with the thread that does it: there is no other way to stop it. */
  function abandon(missed: Missed): Promise<unknown> {
    const ended = worker?.terminate() ?? Promise.resolve()
    worker = undefined
    settle({ missed })
    return ended
  }

  function expire(waiting: Waiting<Task, Result>): void {
    if (waiting === running) abandon({ reason: 'deadline' })
    const at = queue.indexOf(waiting)
    if (at === -1) return
    queue.splice(at, 1)
    tell(waiting, { missed: { reason: 'deadline' } })
  }

  return {
    run(task) {
      if (isClosed) return Promise.resolve({ missed: { reason: 'closed' } })
      if (queue.length >= queueMost) return Promise.resolve({ missed: { reason: 'queue_full' } })
      return new Promise((resolve) => {
        const timer = deadlineMs === undefined ? undefined : setTimeout(() => expire(waiting), deadlineMs)
        const waiting: Waiting<Task, Result> = { task, tell: resolve, timer }
        queue.push(waiting)
        next()
      })
    },
    async close() {
      isClosed = true
      for (const waiting of queue.splice(0)) tell(waiting, { missed: { reason: 'closed' } })
      await abandon({ reason: 'closed' })
    },
  }
}

function tell<Task, Result>({ tell, timer }: Waiting<Task, Result>, ran: Ran<Result>): void {
  clearTimeout(timer)
  tell(ran)
}
