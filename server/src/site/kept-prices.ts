import type pg from 'pg'
import type { Clock } from '../kernel/clock.ts'
import { unavailable } from '../kernel/fault.ts'
import { type PriceBook, readPriceBook } from '../pricing/price-book.ts'
import type { ChangeFeed } from '../storage/change-feed.ts'
import { createJob, type Job } from '../telemetry/job.ts'
import type { Log } from '../telemetry/log.ts'

/** Prices as this process has last read them. No request of the website waits for PostgreSQL. */
export type KeptPrices = {
  /** The last ones that could be read, however old. */
  readonly now: () => PriceBook
  /** Whether they may have changed since: PostgreSQL can't be asked at the moment. */
  readonly isStale: () => boolean
  /** Reads them, whatever is known. */
  readonly read: () => Promise<void>
  /** Reads them again after each change, and from time to time. */
  readonly job: Job
}

type Parts = {
  readonly pool: pg.Pool
  readonly feed: Pick<ChangeFeed, 'subscribe' | 'lagMs'>
  readonly clock: Clock
  readonly log: Log
}

/** Topics of the change log that tell of prices, of models, and of upstreams, without which a model is not sold. */
const TOPICS = ['models', 'price', 'upstream'] as const
const LOOK_MS = 200
const AGAIN_AFTER_FAILURE_MS = 5_000
/** What no change told of. */
const AGAIN_MS = 60_000
const STALE_MS = 5_000

export function createKeptPrices({ pool, feed, clock, log }: Parts): KeptPrices {
  let book: PriceBook | undefined
  let readAtMs = Number.NEGATIVE_INFINITY
  let isChanged = true
  let hasFailed = false
  const changed = () => {
    isChanged = true
  }
  for (const topic of TOPICS) feed.subscribe(topic, { changed, reset: changed })

  async function read(): Promise<void> {
    // Every version of a price is told of: what nobody told of has the same histories.
    const known = isChanged ? undefined : book?.histories
    // Before it is read: what changes meanwhile is read next time.
    isChanged = false
    try {
      book = await readPriceBook(pool, () => clock.nowMs(), known)
      readAtMs = clock.monotonicMs()
      hasFailed = false
    } catch (error) {
      isChanged = true
      hasFailed = true
      throw error
    }
  }

  return {
    now() {
      if (book === undefined) throw unavailable(new Error('the prices were never read'))
      return book
    },
    isStale: () => feed.lagMs() > STALE_MS || hasFailed,
    read,
    job: createJob({
      name: 'prices of the website',
      everyMs: () => (hasFailed ? AGAIN_AFTER_FAILURE_MS : LOOK_MS),
      work: async () => {
        if (isChanged || clock.monotonicMs() - readAtMs > AGAIN_MS) await read()
      },
      clock,
      log,
    }),
  }
}
