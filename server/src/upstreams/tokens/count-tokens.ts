import { Worker } from 'node:worker_threads'
import { estimateTokens } from '../../protocols/estimate.ts'
import type { CountTask } from './count-worker.ts'

export type Tokenizer = 'o200k' | 'cl100k' | 'bytes_3'

export type TokenCounter = {
  /** How many tokens a text has, or about how many where that can't be known in time. */
  readonly count: (text: string, tokenizer: Tokenizer) => Promise<number>
  /** Ends the thread. What is still asked for is estimated. */
  readonly close: () => Promise<void>
}

export type Estimated = { readonly reason: 'deadline' | 'queue_full' | 'failed' | 'closed'; readonly cause?: unknown }

type Parts = {
  readonly deadlineMs?: number
  readonly queueMost?: number
  /** Told each time that an estimate is given instead of a count. */
  readonly onEstimate?: (estimated: Estimated) => void
}

type Task = CountTask & {
  readonly resolve: (tokens: number) => void
  readonly timer: NodeJS.Timeout
}

const DEADLINE_MS = 5_000
const QUEUE_MOST = 100
const BYTES_PER_TOKEN = 3
const HEAP_MOST_MB = 512
/** Beside this file: as it is in the source, and as the build made it beside the bundle. */
const WORKER_FILE = new URL(
  import.meta.url.endsWith('.ts') ? './count-worker.ts' : './count-worker.js',
  import.meta.url,
)

/** Counts with a tokenizer in a thread of its own, which starts when it is first needed. One text at a time. */
export function createTokenCounter({
  deadlineMs = DEADLINE_MS,
  queueMost = QUEUE_MOST,
  onEstimate = () => {},
}: Parts = {}): TokenCounter {
  const queue: Task[] = []
  let running: Task | undefined
  let worker: Worker | undefined
  let isClosed = false

  function start(): Worker {
    const started = new Worker(WORKER_FILE, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MOST_MB } })
    started.on('message', (tokens: number) => {
      if (started === worker) settle(tokens)
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
    const { text, tokenizer } = running
    worker.postMessage({ text, tokenizer } satisfies CountTask)
  }

  function settle(tokens: number): void {
    if (running === undefined) return
    clearTimeout(running.timer)
    running.resolve(tokens)
    running = undefined
    next()
  }

  /** Gives up what is being counted, with the thread that does: there is no other way to stop it. */
  function abandon(estimated: Estimated): Promise<unknown> {
    const ended = worker?.terminate() ?? Promise.resolve()
    worker = undefined
    if (running !== undefined) settle(estimate(running.text, estimated))
    return ended
  }

  function estimate(text: string, estimated: Estimated): number {
    onEstimate(estimated)
    return estimateTokens(text)
  }

  function expire(task: Task): void {
    if (task === running) abandon({ reason: 'deadline' })
    const at = queue.indexOf(task)
    if (at === -1) return
    queue.splice(at, 1)
    task.resolve(estimate(task.text, { reason: 'deadline' }))
  }

  return {
    count(text, tokenizer) {
      if (tokenizer === 'bytes_3') return Promise.resolve(Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN))
      if (isClosed) return Promise.resolve(estimate(text, { reason: 'closed' }))
      if (queue.length >= queueMost) return Promise.resolve(estimate(text, { reason: 'queue_full' }))
      return new Promise((resolve) => {
        const task: Task = { text, tokenizer, resolve, timer: setTimeout(() => expire(task), deadlineMs) }
        queue.push(task)
        next()
      })
    },
    async close() {
      isClosed = true
      for (const { text, timer, resolve } of queue.splice(0)) {
        clearTimeout(timer)
        resolve(estimate(text, { reason: 'closed' }))
      }
      await abandon({ reason: 'closed' })
    },
  }
}
