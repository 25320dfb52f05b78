import { Fault } from '../kernel/fault.ts'
import { createThread, type Ran } from '../kernel/thread.ts'
import type { JsonLimits } from './json.ts'
import type { Parsed, ParseTask } from './large-json-worker.ts'

export type LargeJson = {
  /** Parses a large body, one after the other. What it gives is the value, or throws what is wrong with it, as often as asked. */
  readonly read: (bytes: Buffer) => Promise<() => unknown>
  /** Ends the thread. Nobody waits for what it was at. */
  readonly close: () => Promise<void>
}

const QUEUE_MOST = 100
/** Beside this file: as it is in the source, and as the build made it beside the bundle. */
const WORKER_FILE = new URL(
  import.meta.url.endsWith('.ts') ? './large-json-worker.ts' : './large-json-worker.js',
  import.meta.url,
)

/** Parses in a thread of its own. */
export function createLargeJson(limits: JsonLimits): LargeJson {
  const thread = createThread<ParseTask, Parsed>({ file: WORKER_FILE, queueMost: QUEUE_MOST })
  return {
    async read(bytes) {
      const ran = await thread.run({ bytes, limits })
      return () => valueIn(ran)
    },
    close: thread.close,
  }
}

function valueIn(ran: Ran<Parsed>): unknown {
  if ('missed' in ran) throw new Fault(ran.missed.reason === 'failed' ? 'internal_error' : 'overloaded')
  const { result: parsed } = ran
  if ('value' in parsed) return parsed.value
  const { code, message } = parsed
  const fault = new Fault(code)
  fault.message = message
  throw fault
}
