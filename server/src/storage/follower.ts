import type { Clock } from '../kernel/clock.ts'
import { createJob, type Job } from '../telemetry/job.ts'
import type { Log } from '../telemetry/log.ts'
import type { ChangeFeed } from './change-feed.ts'

/** Something in memory that is read again after each change, so that no request waits for PostgreSQL. */
export type Follower = {
  /** Reads it, whatever is known. */
  readonly read: () => Promise<void>
  /** Whether it may have changed since it was read: PostgreSQL can't be asked at the moment. */
  readonly isStale: () => boolean
  /** Reads it again after each change, and from time to time. */
  readonly job: Job
}

type Parts = {
  readonly name: string
  readonly feed: Pick<ChangeFeed, 'subscribe' | 'lagMs'>
  readonly clock: Clock
  readonly log: Log
  /** Topics of the change log that tell of it. */
  readonly topics: readonly string[]
  readonly read: (isChanged: boolean) => Promise<void>
}

const LOOK_MS = 200
const AGAIN_AFTER_FAILURE_MS = 5_000
/** What no change told of. */
const AGAIN_MS = 60_000
const STALE_MS = 5_000

export function createFollower({ name, feed, clock, log, topics, read }: Parts): Follower {
  let readAtMs = Number.NEGATIVE_INFINITY
  let isChanged = true
  let hasFailed = false
  const changed = () => {
    isChanged = true
  }
  for (const topic of topics) feed.subscribe(topic, { changed, reset: changed })

  async function readNow(): Promise<void> {
    const wasChanged = isChanged
    // Before it is read: what changes meanwhile is read next time.
    isChanged = false
    try {
      await read(wasChanged)
      readAtMs = clock.monotonicMs()
      hasFailed = false
    } catch (error) {
      isChanged = true
      hasFailed = true
      throw error
    }
  }

  return {
    read: readNow,
    isStale: () => feed.lagMs() > STALE_MS || hasFailed,
    job: createJob({
      name,
      everyMs: () => (hasFailed ? AGAIN_AFTER_FAILURE_MS : LOOK_MS),
      work: async () => {
        if (isChanged || clock.monotonicMs() - readAtMs > AGAIN_MS) await readNow()
      },
      clock,
      log,
    }),
  }
}
