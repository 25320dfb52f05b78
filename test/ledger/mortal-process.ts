import { PATIENCE_MS } from '../../harness/until.ts'
import { createCalls } from '../../server/src/calls/calls.ts'
import { createFastPath } from '../../server/src/calls/fast-path.ts'
import { createMoneyQuery } from '../../server/src/calls/money-query.ts'
import { sweepOrphans } from '../../server/src/calls/orphans.ts'
import { createDatabaseTime, createOwnership } from '../../server/src/calls/ownership.ts'
import type { Query } from '../../server/src/calls/query.ts'
import { type Clock, systemClock } from '../../server/src/kernel/clock.ts'
import { createIds, type Id } from '../../server/src/kernel/ids.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { createJob } from '../../server/src/telemetry/job.ts'
import { type Log, silentLog } from '../../server/src/telemetry/log.ts'

/** How long a lease lasts, how often it is renewed, and how those of the dead are swept. */
export type Leases = {
  readonly renewEveryMs: number
  readonly leaseSeconds: number
  readonly sweepEveryMs: number
  readonly graceSeconds: number
}

/** The product's own, as app.ts has them. */
export const PRODUCT_LEASES: Leases = { renewEveryMs: 3_000, leaseSeconds: 10, sweepEveryMs: 2_000, graceSeconds: 10 }

/** For reduced counts: long enough that a busy machine does not end the lease of a process that lives. */
export const SHORT_LEASES: Leases = { renewEveryMs: 700, leaseSeconds: 3, sweepEveryMs: 300, graceSeconds: 3 }

type Parts = {
  readonly url: string
  readonly leases: Leases
  readonly sweeps?: boolean
  readonly ownerId?: Id
  readonly clock?: Clock
  readonly log?: Log
  readonly batchLimit?: number
  readonly beginDeadlineMs?: number
  readonly endDeadlineMs?: number
  /** Stands between the process and PostgreSQL. */
  readonly via?: (query: Query) => Query
}

/** What a process has of the ledger, composed as app.ts does it. */
export function composeProcess(parts: Parts) {
  const { url, leases, sweeps = false, clock = systemClock, log = silentLog, via = (query) => query } = parts
  const { batchLimit = 256, beginDeadlineMs = 5_000, endDeadlineMs = 10_000 } = parts
  const { renewEveryMs, leaseSeconds, sweepEveryMs, graceSeconds } = leases
  const pools = createPools({ url: new Secret(url), log })
  const time = createDatabaseTime(clock)
  const query = via(createMoneyQuery(pools.money))
  const ownerId = parts.ownerId ?? createIds({ clock }).next()
  const path = createFastPath({ clock, log })
  const calls = createCalls({ query, ownerId, clock, log, path, batchLimit, beginDeadlineMs, endDeadlineMs })
  const leaseQuery = via(createMoneyQuery(pools.lease))
  const ownership = createOwnership({ query: leaseQuery, ownerId, calls, clock, time, log, renewEveryMs, leaseSeconds })
  const work = () => sweepOrphans({ pool: pools.rest, log, ownerId, graceSeconds })
  const sweeping = createJob({ name: 'orphans', everyMs: sweepEveryMs, work, clock, log })
  return {
    pools,
    calls,
    ownership,
    ownerId,
    time,
    ids: createIds({ clock: time }),
    async start(): Promise<void> {
      await ownership.start()
      if (sweeps) sweeping.start()
    },
    async stop(): Promise<void> {
      await sweeping.stop(3_000)
      await calls.flush(PATIENCE_MS)
      await ownership.stop()
      await pools.close()
    },
  }
}

export type LedgerProcess = ReturnType<typeof composeProcess>

/** What the module says of calls that it takes from their processes, as the log has it. */
export function createWatchfulLog(say: (what: 'swept' | 'lost' | 'late', id: Id, ownerId: Id) => void): Log {
  const watch: Log['warn'] = (message, { request_id = '-', owner_id = '-' } = {}) => {
    if (message.startsWith('a call is unsettled')) say('swept', request_id, owner_id)
    else if (message.startsWith('a call was lost')) say('lost', request_id, owner_id)
    else if (message.startsWith('the lease was renewed late')) say('late', request_id, owner_id)
  }
  return { ...silentLog, warn: watch, error: watch }
}
