import type { Clock } from '../kernel/clock.ts'
import type { Secret } from '../kernel/secret.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createChangeConnection } from './change-connection.ts'
import { createChangeCursor } from './change-cursor.ts'

export type ChangeListener = {
  readonly changed: (key: string) => void
  /** Anything may have changed. */
  readonly reset: () => void
}

/** Tells this process what any process changed, within a second of the commit. */
export type ChangeFeed = {
  readonly start: () => void
  /** Returns how to unsubscribe. */
  readonly subscribe: (topic: string, listener: ChangeListener) => () => void
  /** How long ago the log was last read to its end; infinite before the first time. */
  readonly lagMs: () => number
  readonly close: () => Promise<void>
}

type Parts = {
  /** A direct connection: LISTEN is session state, which a pooler between us and PostgreSQL would lose. */
  readonly url: Secret
  readonly log: Log
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'changeLagSeconds'>
  readonly pollMs?: number
  /** The longest wait for a connection or an answer before both are given up and made anew. */
  readonly answerTimeoutMs?: number
}

/** Hints come with every change; reading is not more frequent than this all the same. */
const READ_GAP_MS = 20
const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 500

export function createChangeFeed(parts: Parts): ChangeFeed {
  const { url, log, clock, metrics, pollMs = 300, answerTimeoutMs = 2_000 } = parts
  const listeners = new Map<string, Set<ChangeListener>>()
  const stop = new AbortController()
  let wake = new AbortController()
  let readAtMs = Number.NEGATIVE_INFINITY
  let running: Promise<void> | undefined

  const lagMs = () => clock.monotonicMs() - readAtMs
  const connection = createChangeConnection({ url, answerTimeoutMs, hint: () => wake.abort() })
  const readToEnd = createChangeCursor({
    changed({ topic, key }) {
      for (const listener of listeners.get(topic) ?? []) listener.changed(key)
    },
    reset() {
      // The first time there is nothing that could have been missed.
      if (lagMs() !== Number.POSITIVE_INFINITY) log.warn('changes may have been missed: everything cached is dropped')
      for (const some of listeners.values()) for (const listener of some) listener.reset()
    },
  })

  async function run(): Promise<void> {
    let failures = 0
    while (!stop.signal.aborted) {
      wake = new AbortController()
      try {
        const client = await connection.client()
        const startedAtMs = clock.monotonicMs()
        await readToEnd(client)
        readAtMs = startedAtMs
        if (failures > 0) log.info('the change log is read again', { count: failures })
        failures = 0
      } catch (error) {
        connection.drop()
        if (failures === 0 && !stop.signal.aborted) log.warn('the change log could not be read', { error })
        failures += 1
      }
      metrics.changeLagSeconds.set(lagMs() / 1_000)
      await (failures === 0 ? untilDue() : sleep(retryInMs(failures), stop.signal))
    }
  }

  /** From the beginning of one read to the next: in an overload each wait takes a turn of the event loop, and what is cached is trusted for a second only. */
  async function untilDue(): Promise<void> {
    await sleep(READ_GAP_MS, stop.signal)
    const leftMs = pollMs - lagMs()
    if (leftMs > 0) await sleep(leftMs, wake.signal)
  }

  /** Ends early, and without an error, when the signal says so. */
  async function sleep(durationMs: number, signal: AbortSignal): Promise<void> {
    await clock.sleep(durationMs, signal).catch(() => {})
  }

  return {
    start() {
      running ??= run()
    },
    subscribe(topic, listener) {
      const some = listeners.get(topic) ?? new Set()
      listeners.set(topic, some.add(listener))
      return () => some.delete(listener)
    },
    lagMs,
    async close() {
      stop.abort()
      wake.abort()
      connection.drop()
      await running
    },
  }
}

function retryInMs(failures: number): number {
  return Math.min(RETRY_FIRST_MS * 2 ** (failures - 1), RETRY_MAX_MS)
}
