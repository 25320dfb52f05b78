import { type Calls, createCalls } from './calls/calls.ts'
import { createLossWatch } from './calls/loss-ceilings.ts'
import { ceilingsOf } from './calls/loss-sums.ts'
import { createMoneyQuery } from './calls/money-query.ts'
import { createDatabaseTime, createOwnership } from './calls/ownership.ts'
import { catalogue as ours } from './catalogue/catalogue.ts'
import { type Catalogue, spell } from './catalogue/operation.ts'
import { createChores, createLossChore } from './chores.ts'
import type { Config } from './config.ts'
import { type Begin, createBegin, createRequireUnspent } from './gateway/begin.ts'
import { createHeaderNames } from './gateway/header-names.ts'
import { firstCall } from './gateway/idempotency.ts'
import { createLossGuard } from './gateway/loss-guard.ts'
import { createPipeline, type Pipeline } from './gateway/pipeline.ts'
import { createPlans } from './gateway/plans/choose.ts'
import { createPlatforms } from './gateway/platforms.ts'
import { createRecords } from './gateway/records.ts'
import { createRelay } from './gateway/relay.ts'
import { createTellLoss } from './gateway/tell-loss.ts'
import { createEdge, type Edge, type EdgeParts } from './http/edge.ts'
import type { Family } from './http/families.ts'
import { createLargeJson } from './http/large-json.ts'
import { createFamilies } from './http/routes/families.ts'
import type { DrainOptions } from './http/wire/drain.ts'
import { DEFAULT_LIMITS } from './http/wire/limits.ts'
import { createShedding } from './http/wire/shedding.ts'
import { createFailuresByAddress } from './identity/failures-by-address.ts'
import { createIdentify } from './identity/identify.ts'
import { type Clock, systemClock } from './kernel/clock.ts'
import { createIds } from './kernel/ids.ts'
import { createMemoryBudget } from './kernel/memory-budget.ts'
import { sealOf } from './kernel/seal.ts'
import { createPartitions } from './ledger/partitions.ts'
import { RATE_HEADERS } from './limits/headers.ts'
import { createSpentWindows } from './limits/spent-windows.ts'
import { createLinks } from './links/links.ts'
import { createModels } from './pricing/models.ts'
import { createPrices } from './pricing/prices.ts'
import { createQuotes } from './pricing/quotes.ts'
import { type ChangeFeed, createChangeFeed } from './storage/change-feed.ts'
import { requireMigrated } from './storage/migrate.ts'
import { createPools } from './storage/pools.ts'
import { checkSafety } from './storage/safety.ts'
import { createPoller } from './tasks/poller.ts'
import { createTasks } from './tasks/tasks.ts'
import type { Log } from './telemetry/log.ts'
import { createMetrics, type Metrics } from './telemetry/metrics.ts'
import { DEFAULT_RERANK_MODEL } from './upstreams/adapters/rerank.ts'
import { createBindings } from './upstreams/bindings.ts'
import { createBreakers } from './upstreams/breakers.ts'
import { createQuota } from './upstreams/quota.ts'
import { createTokenCounter } from './upstreams/tokens/count-tokens.ts'
import { createTransport } from './upstreams/transport.ts'

export type App = {
  readonly addresses: Readonly<Partial<Record<ListeningRole, string>>>
  /** Finishes what was accepted within the deadline and lets go of everything. */
  readonly stop: () => Promise<void>
}

type Role = Config['roles'][number]
type ListeningRole = Exclude<Role, 'worker'>

/** Beyond this the process no longer knows of revoked keys and changed prices in time, and says that it is unready. */
const STALE_MS = 5_000
const START_DEADLINE_MS = 10_000
const FAILED_START_CLOSE_MS = 500
const FLUSH_DEADLINE_MS = 15_000
const CHORES_DEADLINE_MS = 3_000
const RECORDS_DEADLINE_MS = 2_000
/** What was just given up needs a moment to say so. */
const ABORTED_ENDED_MS = 5_000

type Start = {
  readonly log: Log
  /** Gives up the start, which then fails. */
  readonly cancel: AbortSignal
  readonly clock?: Clock
  /** What is sold, in place of our own list. */
  readonly catalogue?: Catalogue
  /** What callers can reach on base_url, in place of the routes of what is sold. */
  readonly families?: (core: Core) => readonly Family[]
}

/** What an endpoint is made of. */
export type Core = { readonly begin: Begin; readonly end: Calls['end']; readonly run: Pipeline }

/** The composition root: makes every part from the configuration, once, and hands each what it uses. */
export async function startApp(config: Config, start_: Start): Promise<App> {
  const { log, cancel, clock = systemClock, catalogue = ours } = start_
  const { database, http, names, secrets } = config
  const metrics = createMetrics()
  const pools = createPools({
    url: database.url,
    log,
    moneyConnections: database.money_connections,
    restConnections: database.rest_connections,
  })
  const feed = createChangeFeed({ url: database.url, log, clock, metrics })
  const partitions = createPartitions({ pool: pools.rest, log })
  const time = createDatabaseTime(clock)
  const query = createMoneyQuery(pools.money)
  const ownerId = createIds({ clock }).next()
  const calls = createCalls({ query, ownerId, clock, log })
  const ownership = createOwnership({ query: createMoneyQuery(pools.lease), ownerId, calls, clock, time, log })
  const spent = createSpentWindows({ time })
  feed.subscribe('key', { changed: spent.forget, reset: spent.forgetAll })
  const begin = createBegin({ calls, spent, time })
  const requireUnspent = createRequireUnspent({ spent, time })
  const cached = { pool: pools.rest, feed, clock, metrics }
  const transport = createTransport({ clock, metrics, breakers: createBreakers({ clock, metrics }) })
  const memory = createMemoryBudget({ totalBytes: config.memory.budget_bytes, clock })
  metrics.watchMemory(memory)
  const records = createRecords({ pool: pools.rest, clock, log })
  const headerNames = createHeaderNames(names.provider)
  const models = createModels(cached)
  const counter = createTokenCounter()
  const seal = sealOf(secrets)
  const bindings = createBindings({ ...cached, log, seal })
  const asking = { bindings, transport, seal }
  // Ids carry PostgreSQL's time, whatever the clock of this machine says.
  const ids = createIds({ clock: time })
  const links = createLinks({
    ...{ pool: pools.rest, seal, ids, clock, log, platforms: createPlatforms(asking) },
    offlineAccess: config.links.offline_access,
    howToLink: spell('Link one: POST /apis/v1/{social_a}/auth_{social_a}.', names),
  })
  const overran = createTellLoss({ metrics, log })
  const losses = createLossWatch({ pool: pools.rest, ceilings: ceilingsOf(config.loss), time, log, metrics })
  const lossGuard = createLossGuard(losses)
  const run = createPipeline({
    requireUnspent,
    begin,
    end: calls.end,
    plan: createPlans({
      ...{ ...asking, links, calls, models, counter, lossGuard, names },
      prices: createPrices(cached),
      quota: createQuota(cached),
      declaredModels: { rerank: [DEFAULT_RERANK_MODEL, ...config.rerank.models] },
      outputCapHeader: headerNames.outputCap,
      asyncHeader: headerNames.async,
      provider: names.provider,
    }),
    quotes: createQuotes({ time, masterKeys: [secrets.master_key, secrets.previous_master_key].filter(isThere) }),
    firstCall: (credentialId, id) => firstCall({ pool: pools.rest, clock }, credentialId, id),
    relay: createRelay({ clock, log, ended: (how) => metrics.streams.inc({ how }), drainMs: http.abandoned_stream_ms }),
    records,
    overran,
    clock,
    headerNames,
  })
  const tasks = createTasks({ ...asking, pool: pools.rest })
  const poller =
    seal &&
    createPoller({
      ...{ ...asking, seal, pool: pools.rest, calls, records, clock, log, overran },
      polled: (what) => metrics.taskPolls.inc(what),
    })
  const jsonLimits = { ...DEFAULT_LIMITS, jsonDepth: http.json_depth }
  const largeJson = createLargeJson(jsonLimits)
  const families =
    start_.families?.({ begin, end: calls.end, run }) ??
    createFamilies({
      ...{
        catalogue,
        run,
        begin,
        models,
        tasks,
        links,
        publicUrl: http.public_url,
        pool: pools.rest,
        time,
        names,
        headerNames,
        jsonLimits,
        largeJson,
      },
    })
  const isGateway = config.roles.includes('gateway')
  const chores = [
    ...(config.roles.includes('worker') ? createChores({ pools, ownerId, poller, links, metrics, clock, log }) : []),
    ...(isGateway ? [createLossChore({ look: losses.look, clock, log })] : []),
  ]
  const failures = createFailuresByAddress({ clock })
  const edgeParts = {
    clock,
    ids,
    log,
    metrics,
    memory,
    identify: createIdentify({ ...cached, time, failures }),
    readiness: () => (feed.lagMs() < STALE_MS ? [] : ['database']),
  }
  const mustShed = createShedding({ clock, log, waitMs: calls.waitMs })
  const listeners = createListeners(config, families, Object.values(headerNames), edgeParts, mustShed)

  async function stop(options: DrainOptions, storageDeadlineMs?: number): Promise<number> {
    const deadlineAtMs = clock.monotonicMs() + (options.deadlineMs ?? 0)
    const drained = await Promise.all(listeners.map(({ edge }) => edge.drain(options)))
    partitions.stop()
    const chored = Promise.all(chores.map((chore) => chore.stop(CHORES_DEADLINE_MS))).then(() => poller?.idle())
    // A caller who left, or was cut off, has a call that still runs: it is ended by what its upstream says, while there is
    // time, and at our loss after it.
    await calls.untilNoneOpen(Math.max(0, deadlineAtMs - clock.monotonicMs()))
    await transport.close()
    // Streams that were cut wait for their tokens to be counted, which from here on is by estimate.
    await Promise.all([counter.close(), largeJson.close()])
    await calls.untilNoneOpen(ABORTED_ENDED_MS)
    await flush(calls, log)
    await chored
    await records.flush(RECORDS_DEADLINE_MS)
    await ownership.stop()
    await Promise.all([feed.close(), pools.close(storageDeadlineMs)])
    return drained.reduce((sum, { cutRequests }) => sum + cutRequests, 0)
  }

  async function start(): Promise<App['addresses']> {
    await checkSafety(pools.rest)
    await requireMigrated(pools.rest)
    await partitions.start()
    await ownership.start()
    // What was reached before must be known before the first call.
    if (isGateway) await losses.look()
    for (const chore of chores) chore.start()
    feed.start()
    await untilFresh(feed, clock)
    return listen(listeners, config, log)
  }

  try {
    const addresses = await Promise.race([start(), rejectWhen(cancel)])
    return {
      addresses,
      async stop() {
        log.info('stopping')
        const count = await stop({ pauseMs: http.drain_pause_ms, deadlineMs: http.drain_ms })
        log.info('stopped', { count, reason: 'requests cut' })
      },
    }
  } catch (error) {
    // Nobody was told that we are up, so there is nothing to wait for.
    await stop({ deadlineMs: 0 }, FAILED_START_CLOSE_MS)
    throw error
  }
}

const isThere = <T>(value: T | undefined): value is T => value !== undefined

async function flush(calls: Calls, log: Log): Promise<void> {
  if ((await calls.flush(FLUSH_DEADLINE_MS)) && calls.open().length === 0) return
  log.error('not every call could be ended in time: what is left is unsettled', { count: calls.open().length })
}

type Listener = { readonly role: ListeningRole; readonly edge: Edge }

function createListeners(
  { http, roles }: Config,
  families: readonly Family[],
  ownHeaders: readonly string[],
  parts: Pick<EdgeParts, 'clock' | 'ids' | 'log' | 'metrics' | 'memory' | 'identify' | 'readiness'>,
  mustShed: () => boolean,
): readonly Listener[] {
  const shared: Omit<EdgeParts, 'families'> = {
    ...parts,
    limits: {
      bodyBytes: http.body_bytes,
      headerBytes: http.header_bytes,
      jsonDepth: http.json_depth,
      headersTimeoutMs: http.headers_timeout_ms,
      requestTimeoutMs: http.request_timeout_ms,
      connections: http.connections,
    },
    corsOrigins: http.cors_origins,
    trustedProxies: http.trusted_proxies,
  }
  const edges: Readonly<Record<ListeningRole, () => Edge>> = {
    gateway: () => createEdge({ ...shared, mustShed, families, exposedHeaders: [...RATE_HEADERS, ...ownHeaders] }),
    admin: () => createEdge({ ...shared, corsOrigins: [], families: [metricsFamily(parts.metrics)] }),
  }
  return roles.filter((role) => role !== 'worker').map((role) => ({ role, edge: edges[role]() }))
}

async function listen(
  listeners: readonly Listener[],
  config: Config,
  log: Pick<Log, 'info'>,
): Promise<App['addresses']> {
  const addresses: Partial<Record<ListeningRole, string>> = {}
  for (const { role, edge } of listeners) {
    const { host } = config.listen[role]
    const { port } = await edge.listen(config.listen[role]).catch((error: unknown) => {
      throw new Error(listenProblem(role, config.listen[role], error), { cause: error })
    })
    log.info('listening', { role, host, port })
    addresses[role] = `http://${hostAndPort(host, port)}`
  }
  return addresses
}

const LISTEN_REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is taken (EADDRINUSE): stop what listens there, or choose another port',
  EACCES: 'is not for this user (EACCES): choose a port from 1024 up',
  EADDRNOTAVAIL: 'is no address of this machine (EADDRNOTAVAIL): choose one that is',
  ENOTFOUND: 'is not known by that name (ENOTFOUND): correct the name',
}

function listenProblem(role: ListeningRole, { host, port }: Config['listen'][ListeningRole], error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'failed'
  const what = LISTEN_REMEDIES[code] ?? `can't be listened on (${code}): choose another address`
  return `listen.${role} (FAREBOX_LISTEN_${role.toUpperCase()}): ${hostAndPort(host, port)} ${what}`
}

function hostAndPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
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

/** On the operators' listener alone: what is measured says more about an installation than its callers should know. */
function metricsFamily(metrics: Metrics): Family {
  return {
    name: 'metrics',
    prefix: '/metrics',
    dialect: 'data',
    register(scope) {
      scope.get('', { config: { access: 'public' } }, async (_, reply) =>
        reply.type(metrics.contentType).send(await metrics.expose()),
      )
    },
  }
}
