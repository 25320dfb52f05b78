/** Which calls have a line in the log. */
export const LOGGED_CALLS = ['all', 'failed', 'none'] as const
export type LoggedCalls = (typeof LOGGED_CALLS)[number]

/** A call that has ended or was refused, as a line of the log says it: who, what, whom it was asked of, how it went. Never a word of what was asked or answered. */
export type CallLine = {
  readonly request_id: string
  readonly account_id: string
  readonly key_id?: string
  readonly operation: string
  readonly model?: string | undefined
  /** By name; left out where nobody was asked. */
  readonly upstream?: string | undefined
  readonly status: number
  readonly duration_ms?: number
  readonly cost_usd?: string
  /** Our code, where we have refused or failed. */
  readonly code?: string | undefined
  /** Why its upstream gave no valid answer. */
  readonly reason?: string | undefined
}

type Parts = {
  readonly calls: LoggedCalls
  readonly write: (text: string) => void
  /** Makes a text fit to be written that is not ours. */
  readonly clean: (text: string) => string
}

const CAUSES_MOST = 5

/** What went wrong in the end, in one sentence. */
function causeOf(error: unknown): string | undefined {
  let last = error
  for (let depth = 0; depth < CAUSES_MOST && last instanceof Error && last.cause instanceof Error; depth += 1)
    last = last.cause
  return last instanceof Error ? last.message : undefined
}

/**
 * Writes a line for each call, all of a turn of the event loop at once: calls end together, as their END is written together. All but the cause
 * of a failure are names of ours and numbers, which need no cleaning.
 */
export function createCallLines({ calls, write, clean }: Parts) {
  let waiting = ''

  function flush(): void {
    const text = waiting
    waiting = ''
    write(text)
  }

  function add(msg: string, line: CallLine, cause?: string): void {
    if (waiting === '') setImmediate(flush)
    waiting += `${JSON.stringify({ level: 'info', time: new Date().toISOString(), ...line, cause, msg })}\n`
  }

  return {
    /** Whether those that failed have a line, so that nobody else need write one. */
    tellsFailures: calls !== 'none',
    tellsAll: calls === 'all',
    ended: (line: CallLine) => add('call', line),
    failed(line: CallLine, error: unknown): void {
      const cause = causeOf(error)
      add('call failed', line, cause === undefined ? undefined : clean(cause))
    },
    refused: (line: CallLine) => add('call refused', line),
  }
}

export type CallLines = ReturnType<typeof createCallLines>
