import { type Clock, within } from '../kernel/clock.ts'
import type { Log } from './log.ts'

/** Something that a process does again and again, one time after the other. A time that fails is logged and made up for. */
export type Job = {
  readonly start: () => void
  /** Waits for the time that is running, but no longer than that. */
  readonly stop: (deadlineMs: number) => Promise<void>
}

type Parts = {
  readonly name: string
  readonly everyMs: number | (() => number)
  readonly work: () => Promise<unknown>
  readonly clock: Clock
  readonly log: Log
}

export function createJob({ name, everyMs, work, clock, log }: Parts): Job {
  const stopping = new AbortController()
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await work()
      } catch (error) {
        log.warn('a job failed and will be tried again', { job: name, error })
      }
      await clock.sleep(typeof everyMs === 'number' ? everyMs : everyMs(), stopping.signal).catch(() => {})
    }
  }

  return {
    start() {
      running ??= run()
    },
    async stop(deadlineMs) {
      stopping.abort()
      if (running !== undefined) await within(clock, running, deadlineMs)
    },
  }
}
