import type { Clock } from '../kernel/clock.ts'
import { addUpUsage } from '../ledger/add-up-usage.ts'
import type { Sales } from '../site/sales/sales.ts'
import type { Pools } from '../storage/pools.ts'
import { createJob, type Job } from '../telemetry/job.ts'
import type { Log } from '../telemetry/log.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
/** So that one attempt may fail, and another be late, while the snapshot before is still fresh. */
export const SALES_IN_TIME = 5

type JobParts = { readonly clock: Clock; readonly log: Log }

type LossJobParts = JobParts & { readonly look: () => Promise<void> }

/** So that a ceiling is known in every process within a second, with the time that it takes to read. */
const LOOK_EVERY_MS = 800
const LOOK_PAUSE_MS = 100

/** What every process that takes calls does: it adds up losses once a second. */
export function createLossJob({ look, clock, log }: LossJobParts): Job {
  let startedMs = clock.monotonicMs()
  return createJob({
    name: 'ceilings on loss',
    everyMs: () => Math.max(LOOK_PAUSE_MS, LOOK_EVERY_MS - (clock.monotonicMs() - startedMs)),
    work() {
      startedMs = clock.monotonicMs()
      return look()
    },
    clock,
    log,
  })
}

type UsageJobParts = JobParts & { readonly pools: Pick<Pools, 'rest'> }

const ADD_UP_WITHOUT_WORKER_MS = 20 * SECOND_MS

/** And it adds up usage from time to time, so that reports stay quick while no worker runs. */
export function createUsageJob({ pools, clock, log }: UsageJobParts): Job {
  const work = () => addUpUsage(pools.rest)
  return createJob({ name: 'usage without a worker', everyMs: ADD_UP_WITHOUT_WORKER_MS, work, clock, log })
}

type RefusalJobParts = JobParts & { readonly write: () => Promise<void> }

/** And it writes down how often it has refused whom. */
export function createRefusalJob({ write, clock, log }: RefusalJobParts): Job {
  return createJob({ name: 'refusals', everyMs: MINUTE_MS, work: write, clock, log })
}

type ContractJobParts = JobParts & { readonly keep: () => Promise<void> }

/** And it says what contract it serves, which is kept from then on. */
export function createContractJob({ keep, clock, log }: ContractJobParts): Job {
  return createJob({ name: 'contract', everyMs: HOUR_MS, work: keep, clock, log })
}

type SalesJobParts = JobParts & {
  readonly sales: Pick<Sales, 'refresh'>
  readonly freshMs: number
}

const SALES_READ_MS = 10 * SECOND_MS

/** And where it has the website, it takes what the worker has seen of what is sold into memory. */
export function createSalesJob({ sales, freshMs, clock, log }: SalesJobParts): Job {
  const everyMs = Math.min(SALES_READ_MS, freshMs / SALES_IN_TIME)
  return createJob({ name: 'snapshot of what is sold', everyMs, work: sales.refresh, clock, log })
}
