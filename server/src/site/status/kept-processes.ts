import type pg from 'pg'
import type { Clock } from '../../kernel/clock.ts'
import { type ProcessView, readProcesses } from '../../processes/processes.ts'
import { createJob, type Job } from '../../telemetry/job.ts'
import type { Log } from '../../telemetry/log.ts'

/** What all processes last said of themselves, in memory: no page waits for PostgreSQL. */
export type KeptProcesses = {
  readonly now: () => Reading
  readonly job: Job
}

export type Reading = {
  readonly processes: readonly ProcessView[]
  /** When they were read; null where they never were. */
  readonly readAt: Date | null
  /** Whether PostgreSQL gives them now: what stands here is not older than a few readings. */
  readonly isFresh: boolean
}

type Parts = { readonly pool: pg.Pool; readonly clock: Clock; readonly log: Log }

const READ_MS = 2_000
const STALE_MS = 3 * READ_MS

export function createKeptProcesses({ pool, clock, log }: Parts): KeptProcesses {
  let processes: readonly ProcessView[] = []
  let readAt: Date | null = null
  let readAtMs = Number.NEGATIVE_INFINITY

  return {
    now: () => ({ processes, readAt, isFresh: clock.monotonicMs() - readAtMs < STALE_MS }),
    job: createJob({
      name: 'reports of processes',
      everyMs: READ_MS,
      async work() {
        processes = await readProcesses(pool)
        readAt = new Date(clock.nowMs())
        readAtMs = clock.monotonicMs()
      },
      clock,
      log,
    }),
  }
}
