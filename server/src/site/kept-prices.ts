import type pg from 'pg'
import type { Catalogue } from '../catalogue/operation.ts'
import type { Clock } from '../kernel/clock.ts'
import { unavailable } from '../kernel/fault.ts'
import { type PriceBook, readPriceBook } from '../pricing/price-book.ts'
import type { ChangeFeed } from '../storage/change-feed.ts'
import { createFollower, type Follower } from '../storage/follower.ts'
import type { Log } from '../telemetry/log.ts'

/** What is sold and its prices, as this process has last read them. No request of the website waits for PostgreSQL. */
export type KeptPrices = Follower & {
  /** The last ones that could be read, however old. */
  readonly now: () => PriceBook
}

type Parts = {
  readonly pool: pg.Pool
  readonly catalogue: Pick<Catalogue, 'operations'>
  readonly feed: Pick<ChangeFeed, 'subscribe' | 'lagMs'>
  readonly clock: Clock
  readonly log: Log
}

export function createKeptPrices({ pool, catalogue, feed, clock, log }: Parts): KeptPrices {
  let book: PriceBook | undefined
  const follower = createFollower({
    ...{ name: 'prices of the website', feed, clock, log },
    // They tell of prices, of models, of switches, and of upstreams, without which nothing is sold.
    topics: ['models', 'price', 'upstream'],
    async read(isChanged) {
      // Every version of a price is told of: what nobody told of has the same histories.
      const known = isChanged ? undefined : book?.histories
      book = await readPriceBook(pool, catalogue, () => clock.nowMs(), known)
    },
  })
  return {
    ...follower,
    now() {
      if (book === undefined) throw unavailable(new Error('the prices were never read'))
      return book
    },
  }
}
