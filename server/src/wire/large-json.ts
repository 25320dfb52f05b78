import { Fault } from '../kernel/fault.ts'
import { createThread, type Ran } from '../kernel/thread.ts'
import type { JsonLimits } from './json.ts'
import type { Parsed, ParseTask } from './large-json-worker.ts'

export type LargeJson = {
  /** Parses a large body, one after the other, and digests it behind `head`. */
  readonly read: (bytes: Buffer, head?: string) => Promise<LargeBody>
  /** Ends the thread. Nobody waits for what it was at. */
  readonly close: () => Promise<void>
}

export type LargeBody = {
  /** Its value, or throws what is wrong with it, as often as asked. */
  readonly value: () => unknown
  /** SHA-256 in base64url; undefined where the thread has not come to it. */
  readonly digest: string | undefined
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
    async read(bytes, head = '') {
      const ran = await thread.run({ bytes, limits, head })
      return { value: () => valueIn(ran), digest: 'result' in ran ? ran.result.digest : undefined }
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
