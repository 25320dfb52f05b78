import { Worker } from 'node:worker_threads'
import { Fault } from '../kernel/fault.ts'
import type { JsonLimits } from './json.ts'
import type { Parsed, ParseTask } from './large-json-worker.ts'

export type LargeJson = {
  /** Parses a large body, one after the other. What it gives is the value, or throws what is wrong with it, as often as asked. */
  readonly read: (bytes: Buffer) => Promise<() => unknown>
  /** Ends the thread. Nobody waits for what it was at. */
  readonly close: () => Promise<void>
}

type Task = { readonly bytes: Buffer; readonly tell: (parsed: Parsed) => void }

const HEAP_MOST_MB = 512
const QUEUE_MOST = 100
const FAILED: Parsed = { code: 'internal_error', message: new Fault('internal_error').message }
const FULL: Parsed = { code: 'overloaded', message: new Fault('overloaded').message }
/** Beside this file: as it is in the source, and as the build made it beside the bundle. */
const WORKER_FILE = new URL(
  import.meta.url.endsWith('.ts') ? './large-json-worker.ts' : './large-json-worker.js',
  import.meta.url,
)

/** Parses in a thread of its own, which starts when it is first needed. */
export function createLargeJson(limits: JsonLimits): LargeJson {
  const queue: Task[] = []
  let running: Task | undefined
  let worker: Worker | undefined
  let isClosed = false

  function start(): Worker {
    const started = new Worker(WORKER_FILE, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MOST_MB } })
    started.on('message', (parsed: Parsed) => {
      if (started === worker) settle(parsed)
    })
    // Without a listener the error would end the process.
    started.on('error', () => {
      if (started !== worker) return
      worker = undefined
      settle(FAILED)
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
    worker.postMessage({ bytes: running.bytes, limits } satisfies ParseTask)
  }

  function settle(parsed: Parsed): void {
    const told = running
    running = undefined
    told?.tell(parsed)
    next()
  }

  return {
    async read(bytes) {
      const parsed = await new Promise<Parsed>((resolve) => {
        if (isClosed || queue.length >= QUEUE_MOST) {
          resolve(FULL)
          return
        }
        queue.push({ bytes, tell: resolve })
        next()
      })
      return () => valueIn(parsed)
    },
    async close() {
      isClosed = true
      for (const { tell } of queue.splice(0)) tell(FULL)
      const ended = worker?.terminate()
      worker = undefined
      settle(FULL)
      await ended
    },
  }
}

function valueIn(parsed: Parsed): unknown {
  if ('value' in parsed) return parsed.value
  const { code, message } = parsed
  const fault = new Fault(code)
  fault.message = message
  throw fault
}
