import { type Contracts, createContracts } from './app/contracts.ts'
import { createGateway, type Gateway } from './app/gateway.ts'
import { createInfrastructure, type Infrastructure, STALE_MS } from './app/infrastructure.ts'
import { createInterfaces } from './app/interfaces.ts'
import type { ListeningRole } from './app/listeners.ts'
import { createMoney, type Money } from './app/money.ts'
import type { Start } from './app/options.ts'
import type { SiteParts } from './app/people.ts'
import { createReport } from './app/report.ts'
import { createWork } from './app/work.ts'
import type { Calls } from './calls/calls.ts'
import { SEALED_COLUMNS } from './cli/sealed-columns.ts'
import type { Config } from './config.ts'
import { type Listener, listen } from './http/listen.ts'
import type { Clock } from './kernel/clock.ts'
import type { ChangeFeed } from './storage/change-feed.ts'
import { requireMigrated } from './storage/migrate.ts'
import { checkSafety } from './storage/safety.ts'
import { requireMasterKey } from './storage/sealed-values.ts'
import type { Log } from './telemetry/log.ts'
import type { DrainOptions } from './wire/drain.ts'

export type App = {
  readonly addresses: Readonly<Partial<Record<ListeningRole, string>>>
  /** Finishes what was accepted within the deadline and lets go of everything. */
  readonly stop: () => Promise<void>
  /** What a stop would wait for now, in words. */
  readonly waiting: () => string
}

const START_DEADLINE_MS = 10_000
const FAILED_START_CLOSE_MS = 500
const FLUSH_DEADLINE_MS = 15_000
const CHORES_DEADLINE_MS = 3_000
const DELIVERIES_DEADLINE_MS = 3_000
const RECORDS_DEADLINE_MS = 2_000
/** What was just given up needs a moment to say so. */
const ABORTED_ENDED_MS = 5_000

/** The composition root: makes every part from the configuration, once, and hands each what it uses. */
export async function startApp(config: Config, options: Start): Promise<App> {
  const infrastructure = createInfrastructure(config, options)
  const money = createMoney(infrastructure)
  const contracts = await createContracts(infrastructure, options)
  const gateway = createGateway(infrastructure, money, contracts, options)
  const work = await createWork(infrastructure, money, { ...gateway, contracts }, options)
  const site = config.roles.includes('site')
    ? (await import('./app/people.ts')).createSiteParts(infrastructure, work.outbound, options)
    : null
  const listeners = await createInterfaces(infrastructure, money, gateway, { contracts, site }, options)
  const parts = { infrastructure, money, gateway, work, contracts, site, listeners }
  const { log } = infrastructure
  try {
    const addresses = await Promise.race([start(parts), rejectWhen(options.cancel)])
    return {
      addresses,
      waiting: () => waitingIn(parts),
      async stop() {
        log.info('stopping')
        const { drain_pause_ms: pauseMs, drain_ms: deadlineMs } = config.http
        const count = await stop(parts, { pauseMs, deadlineMs })
        log.info('stopped', { count, reason: 'requests cut' })
      },
    }
  } catch (error) {
    // Nobody was told that we are up, so there is nothing to wait for.
    await stop(parts, { deadlineMs: 0 }, FAILED_START_CLOSE_MS)
    throw error
  }
}

type Parts = {
  readonly infrastructure: Infrastructure
  readonly money: Money
  readonly gateway: Gateway
  readonly work: Awaited<ReturnType<typeof createWork>>
  readonly contracts: Contracts
  /** Null where this process has not the role. */
  readonly site: SiteParts | null
  readonly listeners: readonly Listener<ListeningRole>[]
}

async function start({
  infrastructure,
  money,
  gateway,
  work,
  contracts,
  site,
  listeners,
}: Parts): Promise<App['addresses']> {
  const { log, clock, pools, feed } = infrastructure
  await checkSafety(pools)
  await requireMigrated(pools.rest)
  await requireMasterKey(pools.rest, infrastructure.seal, SEALED_COLUMNS)
  // Whoever is told of it can read it from every process.
  await contracts.follower.read()
  await money.partitions.start()
  await money.ownership.start(createReport(infrastructure, money, gateway, contracts))
  // What was reached before must be known before the first call.
  if (work.makesCalls) await gateway.losses.look()
  for (const job of work.jobs) job.start()
  contracts.follower.job.start()
  // Pages never wait for it from here on.
  await site?.prices.read()
  site?.prices.job.start()
  feed.start()
  await untilFresh(feed, clock)
  site?.processes.job.start()
  return listen(listeners, log)
}

function waitingIn({ listeners, money }: Parts): string {
  const requests = listeners.reduce((sum, { edge }) => sum + edge.busy(), 0)
  const calls = money.calls.open().length
  const left = calls === 0 ? '' : '; what they hold stays held as unsettled: farebox ledger unsettled'
  return `${requests} requests were not answered and ${calls} calls had not ended${left}`
}

/** Finishes what was accepted, as far as the deadline lets it, and lets go of everything. How many requests were cut. */
async function stop(parts: Parts, options: DrainOptions, storageDeadlineMs?: number): Promise<number> {
  const { infrastructure, money, gateway, work, contracts, site, listeners } = parts
  const { clock, log, feed, pools } = infrastructure
  const { calls } = money
  const deadlineAtMs = clock.monotonicMs() + (options.deadlineMs ?? 0)
  site?.requestWatch.close()
  const drained = await Promise.all(listeners.map(({ edge }) => edge.drain(options)))
  money.partitions.stop()
  await site?.issuer?.close()
  const jobs = [...work.jobs, contracts.follower.job, ...(site === null ? [] : [site.prices.job, site.processes.job])]
  const chored = Promise.all(jobs.map((job) => job.stop(CHORES_DEADLINE_MS)))
    .then(() => work.worker?.idle(DELIVERIES_DEADLINE_MS))
    .finally(() => {
      work.worker?.close()
      return work.outbound.close()
    })
  // A caller who left, or was cut off, has a call that still runs: it is ended by what its upstream says, while there is
  // time, and at our loss after it.
  await calls.untilNoneOpen(Math.max(0, deadlineAtMs - clock.monotonicMs()))
  await gateway.transport.close()
  // Streams that were cut wait for their tokens to be counted, which from here on is by estimate.
  await Promise.all([gateway.counter.close(), gateway.largeJson.close()])
  await calls.untilNoneOpen(ABORTED_ENDED_MS)
  await flush(calls, log)
  await chored
  await gateway.refusals.flush(RECORDS_DEADLINE_MS)
  await gateway.refusedCalls.flush(RECORDS_DEADLINE_MS)
  await gateway.records.flush(RECORDS_DEADLINE_MS)
  await money.ownership.stop()
  await Promise.all([feed.close(), pools.close(storageDeadlineMs)])
  return drained.reduce((sum, { cutRequests }) => sum + cutRequests, 0)
}

async function flush(calls: Calls, log: Log): Promise<void> {
  if ((await calls.flush(FLUSH_DEADLINE_MS)) && calls.open().length === 0) return
  log.error('not every call could be ended in time: what is left is unsettled', { count: calls.open().length })
}

function rejectWhen(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

/** The change log is read once before the first request, so that a process is ready when it says that it is. */
async function untilFresh(feed: ChangeFeed, clock: Clock): Promise<void> {
  const deadlineMs = clock.monotonicMs() + START_DEADLINE_MS
  while (feed.lagMs() > STALE_MS) {
    if (clock.monotonicMs() > deadlineMs) throw new Error('PostgreSQL: the change log could not be read in time.')
    await clock.sleep(10)
  }
}
