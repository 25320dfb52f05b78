import { createThread, type Missed } from '../../kernel/thread.ts'
import { estimateTokens } from '../../protocols/estimate.ts'
import type { CountTask } from './count-worker.ts'

export type Tokenizer = 'o200k' | 'cl100k' | 'bytes_3'

export type TokenCounter = {
  /** How many tokens a text has, or about how many where that can't be known in time. */
  readonly count: (text: string, tokenizer: Tokenizer) => Promise<number>
  /** Ends the thread. What is still asked for is estimated. */
  readonly close: () => Promise<void>
}

type Parts = {
  readonly deadlineMs?: number
  readonly queueMost?: number
  /** Told each time that an estimate is given instead of a count. */
  readonly onEstimate?: (missed: Missed) => void
}

const DEADLINE_MS = 5_000
const QUEUE_MOST = 100
const BYTES_PER_TOKEN = 3
/** Beside this file: as it is in the source, and as the build made it beside the bundle. */
const WORKER_FILE = new URL(
  import.meta.url.endsWith('.ts') ? './count-worker.ts' : './count-worker.js',
  import.meta.url,
)

/** Counts with a tokenizer in a thread of its own. One text at a time. */
export function createTokenCounter({
  deadlineMs = DEADLINE_MS,
  queueMost = QUEUE_MOST,
  onEstimate = () => {},
}: Parts = {}): TokenCounter {
  const thread = createThread<CountTask, number>({ file: WORKER_FILE, queueMost, deadlineMs })
  return {
    async count(text, tokenizer) {
      if (tokenizer === 'bytes_3') return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN)
      const ran = await thread.run({ text, tokenizer })
      if ('result' in ran) return ran.result
      onEstimate(ran.missed)
      return estimateTokens(text)
    },
    close: thread.close,
  }
}
