import type pg from 'pg'
import type { Log } from '../telemetry/log.ts'

/** Keeps the days ahead ready for charges: a day without a partition takes no calls. */
export type Partitions = {
  /** Makes what is missing now, and again every hour. */
  readonly start: () => Promise<void>
  readonly stop: () => void
}

const EVERY_MS = 3_600_000

export function createPartitions({ pool, log }: { readonly pool: pg.Pool; readonly log: Log }): Partitions {
  let timer: NodeJS.Timeout | undefined
  const make = () => pool.query('select make_charge_partitions()')
  return {
    async start() {
      await make()
      // A week is made ahead, so one hour that fails is made up for by the next.
      timer = setInterval(
        () => make().catch((error: unknown) => log.error('no partitions were made', { error })),
        EVERY_MS,
      )
      timer.unref()
    },
    stop: () => clearInterval(timer),
  }
}
