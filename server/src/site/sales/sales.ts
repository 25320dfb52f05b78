import type pg from 'pg'
import type { Catalogue } from '../../catalogue/operation.ts'
import { OBSERVATION_TOO_OLD, SALES_SOURCE_UNAVAILABLE, type SalesNow } from '../../http/routes/sales.ts'
import type { Clock } from '../../kernel/clock.ts'
import { listModels } from '../../pricing/models.ts'
import { listPrices } from '../../pricing/prices.ts'
import { protocolsSold, readSold } from '../../pricing/sold.ts'
import type { Log } from '../../telemetry/log.ts'
import { keepSnapshot, type Read, readSnapshot } from './kept-snapshot.ts'
import { type SalesInput, salesDataOf } from './sales-data.ts'

export type Sales = {
  /** For the worker: observes, and puts what it saw in place of what was seen before. */
  readonly make: () => Promise<void>
  /** For the website: takes the newest into memory. What can't be read or verified replaces nothing. */
  readonly refresh: () => Promise<void>
  /** From memory alone. */
  readonly now: () => SalesNow
}

type Parts = Pick<SalesInput, 'names'> & {
  readonly catalogue: Pick<Catalogue, 'operations'>
  readonly contractHash: () => string | null
  readonly pool: pg.Pool
  readonly clock: Clock
  readonly log: Log
  /** Older ones are stale. */
  readonly freshMs: number
}

type Held = Pick<Read, 'snapshot' | 'ageMs'> & { readonly readAtMs: number }

export function createSales({ pool, clock, log, freshMs, catalogue, names, contractHash }: Parts): Sales {
  let held: Held | undefined
  /** Whether whoever made it, or whoever read it last, has met a failure since. */
  let isFailing = false

  return {
    make: () =>
      keepSnapshot(pool, async (observedAt) => {
        const [prices, sold] = await Promise.all([listPrices(pool), readSold(pool, catalogue)])
        const models = await listModels(pool, protocolsSold(catalogue, sold.switches))
        return salesDataOf({ names, contractHash: contractHash(), sold, prices, models }, observedAt)
      }),

    async refresh() {
      const readAtMs = clock.monotonicMs()
      try {
        const read = await readSnapshot(pool)
        if (read !== undefined) held = { ...read, readAtMs }
        isFailing = read?.hasFailed === true
      } catch (error) {
        if (!isFailing) log.warn('the snapshot of what is sold cannot be read: the last one is kept', { error })
        isFailing = true
      }
    },

    now() {
      if (held === undefined) return { freshness: 'unavailable' }
      const { snapshot, ageMs, readAtMs } = held
      if (isFailing) return { freshness: 'stale', snapshot, reason: SALES_SOURCE_UNAVAILABLE }
      const isOld = ageMs + clock.monotonicMs() - readAtMs > freshMs
      return isOld ? { freshness: 'stale', snapshot, reason: OBSERVATION_TOO_OLD } : { freshness: 'fresh', snapshot }
    },
  }
}
