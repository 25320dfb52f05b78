import { createAccountApi } from './account-api.ts'
import { createMetadata } from './agent/metadata.ts'
import { createOriginCheck } from './agent/origins.ts'
import { createToolRefusals } from './agent/refusals.ts'
import { createAgentFace } from './agent/server.ts'
import { type Calls, createCalls } from './calls/calls.ts'
import { createLossWatch } from './calls/loss-ceilings.ts'
import { ceilingsOf } from './calls/loss-sums.ts'
import { createMoneyQuery } from './calls/money-query.ts'
import { createDatabaseTime, createOwnership } from './calls/ownership.ts'
import { catalogue as ours } from './catalogue/catalogue.ts'
import { type Catalogue, spell } from './catalogue/operation.ts'
import {
  createChores,
  createContractChore,
  createLossChore,
  createRefusalChore,
  createSalesChore,
  createUsageChore,
  type Notices,
} from './chores.ts'
import { SEALED_COLUMNS } from './cli/rotate.ts'
import { VERSION } from './cli/version.ts'
import { type Config, missingForPeople, modelBodyBytes } from './config.ts'
import { createContract } from './contracts/contract.ts'
import { createKeptContracts } from './contracts/kept-contracts.ts'
import { createAttribute } from './gateway/attribution.ts'
import { type Begin, createBegin, createRequireUnspent } from './gateway/begin.ts'
import { createCeilingsFor } from './gateway/ceilings.ts'
import { createGrowths } from './gateway/growth.ts'
import { createContractHeaderNames, createHeaderNames } from './gateway/header-names.ts'
import { createFirstCall } from './gateway/idempotency.ts'
import { createLossGuard } from './gateway/loss-guard.ts'
import { createMandates } from './gateway/mandates.ts'
import { createPipeline, type Pipeline } from './gateway/pipeline.ts'
import { createPlans } from './gateway/plans/choose.ts'
import { VIDEO_TASKS } from './gateway/plans/video-tasks.ts'
import { createPlatforms } from './gateway/platforms.ts'
import { createQuotedAdmission } from './gateway/quoted-admission.ts'
import { createRecords } from './gateway/records.ts'
import { createRefusals } from './gateway/refusals.ts'
import { createRelay } from './gateway/relay.ts'
import { createTellLoss } from './gateway/tell-loss.ts'
import { createTellRefused } from './gateway/tell-refused.ts'
import type { Family } from './http/families.ts'
import { createLargeJson } from './http/large-json.ts'
import { type Listener, listen } from './http/listen.ts'
import type { Assets } from './http/pages/assets.ts'
import type { LinkPages } from './http/pages/link-page.ts'
import type { Pages } from './http/pages/page.ts'
import { contractInputOf } from './http/routes/contract-input.ts'
import { contractsFamily } from './http/routes/contracts.ts'
import { createFamilies } from './http/routes/families.ts'
import { salesFamily } from './http/routes/sales.ts'
import type { DrainOptions } from './http/wire/drain.ts'
import { DEFAULT_LIMITS } from './http/wire/limits.ts'
import { createFindEndUser } from './identity/end-users.ts'
import { createFailuresByAddress } from './identity/failures-by-address.ts'
import { createIdentify } from './identity/identify.ts'
import { createMakeAllowances } from './identity/made-allowances.ts'
import { createAttempts } from './identity/people/attempts.ts'
import { createPasswords } from './identity/people/passwords.ts'
import { createPeople, type People } from './identity/people/people.ts'
import { createTellReuse } from './identity/people/reused-grant.ts'
import { type Clock, systemClock } from './kernel/clock.ts'
import { createIds } from './kernel/ids.ts'
import { sealOf } from './kernel/seal.ts'
import { readBudgets } from './ledger/balance.ts'
import { createBudgetReader } from './ledger/budget-reader.ts'
import { creditWithin } from './ledger/credit.ts'
import { createPartitions } from './ledger/partitions.ts'
import { findEnded, findOpen } from './ledger/requests.ts'
import { createSpentWindows } from './limits/spent-windows.ts'
import { createLinks } from './links/links.ts'
import { createListeners, type ListeningRole } from './listeners.ts'
import { createMailDeliverer } from './mail/deliverer.ts'
import { createBalanceNotices } from './oauth/balance-notices.ts'
import { createBudgetNotices } from './oauth/budget-notices.ts'
import { createIssuer } from './oauth/issuer.ts'
import { createMandateNotices } from './oauth/mandate-notices.ts'
import { createOffer } from './oauth/offer.ts'
import type { SiteSettings } from './oauth/parts.ts'
import { doorRoutes } from './oauth/provider/door.ts'
import { createResources, metadataPathOf, protectedResourceMetadata } from './oauth/provider/resources.ts'
import { type AuthorizationServerParts, createAuthorizationServer } from './oauth/provider/server.ts'
import { createUpkeep } from './oauth/provider/upkeep.ts'
import { GRANTS_PATH } from './oauth/routes/grants.ts'
import { ISSUER_CALLBACK, ISSUER_PATH } from './oauth/routes/issuer.ts'
import { createSiteRoutes } from './oauth/site-routes.ts'
import { createOutbound, type Outbound } from './outbound/outbound.ts'
import type { Deliverers } from './outbox/deliverer.ts'
import { createOutboxWorker } from './outbox/worker.ts'
import { createModels } from './pricing/models.ts'
import { createPrices } from './pricing/prices.ts'
import { createQuotes } from './pricing/quotes.ts'
import { createSiteFaultPage } from './site/fault-page.ts'
import { createKeptPrices, type KeptPrices } from './site/kept-prices.ts'
import { createSales } from './site/sales/sales.ts'
import { createShell } from './site/shell.ts'
import { createSite } from './site/site.ts'
import type { Health } from './site/status/status.ts'
import { createWatch, type Watch } from './site/status/watch.ts'
import { type ChangeFeed, createChangeFeed } from './storage/change-feed.ts'
import { createSendMail, MAIL, type SendMail } from './storage/mail.ts'
import { requireMigrated } from './storage/migrate.ts'
import { createPools } from './storage/pools.ts'
import { checkSafety } from './storage/safety.ts'
import { requireMasterKey } from './storage/sealed-values.ts'
import { createPoller } from './tasks/poller.ts'
import { createTasks } from './tasks/tasks.ts'
import type { Log } from './telemetry/log.ts'
import { createMetrics } from './telemetry/metrics.ts'
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
  /** What a stop would wait for now, in words. */
  readonly waiting: () => string
}

/** Beyond this the process no longer knows of revoked keys and changed prices in time, and says that it is unready. */
const STALE_MS = 5_000
const START_DEADLINE_MS = 10_000
const FAILED_START_CLOSE_MS = 500
const FLUSH_DEADLINE_MS = 15_000
const CHORES_DEADLINE_MS = 3_000
const DELIVERIES_DEADLINE_MS = 3_000
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
  /** Who delivers messages of the outbox, by kind, in place of our own. */
  readonly deliverers?: (core: DeliveryCore) => Deliverers
}

/** What a deliverer is made of. */
export type DeliveryCore = { readonly outbound: Outbound }

/** What an endpoint is made of. */
export type Core = { readonly begin: Begin; readonly end: Calls['end']; readonly run: Pipeline }

/** The composition root: makes every part from the configuration, once, and hands each what it uses. */
export async function startApp(config: Config, options: Start): Promise<App> {
  const ground = createGround(config, options)
  const money = createMoney(ground)
  const contracts = createContracts(ground, options)
  const gateway = createGateway(ground, money, contracts)
  const work = createWork(ground, money, { ...gateway, contracts }, options)
  const issuer = createIssuerOf(ground)
  const authorization = authorizationOf(ground, work.outbound)
  const sitePrices = createKeptPrices({ ...ground, pool: ground.pools.rest })
  const watch = createWatch({ ...ground, isLedgerThere: () => missingIn(ground).length === 0 })
  const faces = { people: createPeopleOf(ground), issuer, authorization, contracts, sitePrices, watch }
  const listeners = createFaces(ground, money, gateway, faces, options)
  const parts = { ground, money, gateway, work, contracts, issuer, listeners, sitePrices, watch }
  const { log } = ground
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

/** What everything else stands on: PostgreSQL and its change log, clocks, figures, the master key. */
function createGround(config: Config, { log, clock = systemClock }: Start) {
  const { database, names, secrets } = config
  const metrics = createMetrics()
  const pools = createPools({
    url: database.url,
    log,
    moneyConnections: database.money_connections,
    restConnections: database.rest_connections,
  })
  const feed = createChangeFeed({ url: database.url, log, clock, metrics })
  const time = createDatabaseTime(clock)
  return {
    config,
    log,
    clock,
    metrics,
    pools,
    feed,
    time,
    // Ids carry PostgreSQL's time, whatever the clock of this machine says.
    ids: createIds({ clock: time }),
    seal: sealOf(secrets),
    headerNames: createHeaderNames(names.provider),
    /** What a cache of rows is made of. */
    cached: { pool: pools.rest, feed, clock, metrics },
  }
}

type Ground = ReturnType<typeof createGround>

/** BEGIN and END, and whose calls are open between them. */
function createMoney({ pools, feed, clock, time, log }: Ground) {
  const ownerId = createIds({ clock }).next()
  const calls = createCalls({ query: createMoneyQuery(pools.money), ownerId, clock, log })
  const spent = createSpentWindows({ time })
  feed.subscribe('key', { changed: spent.forget, reset: spent.forgetAll })
  return {
    ownerId,
    calls,
    ownership: createOwnership({ query: createMoneyQuery(pools.lease), ownerId, calls, clock, time, log }),
    partitions: createPartitions({ pool: pools.rest, log }),
    begin: createBegin({ calls, spent, time }),
    requireUnspent: createRequireUnspent({ spent, time }),
  }
}

type Money = ReturnType<typeof createMoney>

/** What callers can rely on, and what they could rely on before. Calls go on where none can be made: nobody pays by it. */
function createContracts({ config, pools, clock, log }: Ground, { catalogue = ours }: Start) {
  const freshMs = config.sales.fresh_seconds * 1_000
  const salesOf = (contractHash: string | null) =>
    createSales({ pool: pools.rest, clock, log, freshMs, catalogue, names: config.names, contractHash })
  const kept = createKeptContracts({ pool: pools.rest, keptDays: config.contract.kept_days })
  const { names, http } = config
  try {
    const current = createContract(contractInputOf({ catalogue, names, publicUrl: http.public_url }))
    return { current, kept, sales: salesOf(current.contentHash), keep: () => kept.keep(current) }
  } catch (error) {
    log.error('there is no contract that could be served', { error })
    return { current: null, kept, sales: salesOf(null), keep: async () => {} }
  }
}

type Contracts = ReturnType<typeof createContracts>

/** Whom we ask and what it costs, and the path of a call through all of it. */
function createGateway(ground: Ground, money: Money, contracts: Contracts) {
  const { config, log, clock, metrics, pools, time, ids, seal, cached, headerNames } = ground
  const { calls, begin, requireUnspent } = money
  const { http, names, secrets } = config
  const breakers = createBreakers({ clock, metrics })
  const transport = createTransport({ clock, metrics, breakers })
  const bindings = createBindings({ ...cached, log, seal })
  const platforms = createPlatforms({ bindings, transport })
  const { offline_access: offlineAccess } = config.links
  const howToLink = spell('Link one: POST /apis/v1/{social_a}/auth_{social_a}.', names)
  const links = createLinks({ pool: pools.rest, seal, ids, clock, log, platforms, offlineAccess, howToLink })
  const models = createModels(cached)
  const counter = createTokenCounter()
  const records = createRecords({ pool: pools.rest, clock, log })
  const refusals = createRefusals({ pool: pools.rest, clock, time })
  const losses = createLossWatch({ pool: pools.rest, ceilings: ceilingsOf(config.loss), time, log, metrics })
  const overran = createTellLoss({ metrics, log })
  const prices = createPrices(cached)
  const plan = createPlans({
    bindings,
    transport,
    clock,
    seal,
    links,
    calls,
    models,
    counter,
    names,
    lossGuard: createLossGuard(losses),
    refusedBy: createTellRefused({ log, clock }),
    prices,
    quota: createQuota(cached),
    declaredModels: { rerank: [DEFAULT_RERANK_MODEL, ...config.rerank.models] },
    outputCapHeader: headerNames.outputCap,
    fittedLimitHeader: headerNames.fittedLimit,
    upstreamModelHeader: headerNames.upstreamModel,
    asyncHeader: headerNames.async,
    provider: names.provider,
  })
  const mandates = createMandates({ pool: pools.rest, ids, seal, siteUrl: siteUrlOf(config) })
  const run = createPipeline({
    requireUnspent,
    attribute: createAttribute({ findEndUser: createFindEndUser({ pool: pools.rest, clock }) }),
    ceilingsFor: createCeilingsFor({ makeAllowances: createMakeAllowances({ pool: pools.rest, clock }), time }),
    quotedAdmission: createQuotedAdmission({ readBudgets: (some) => readBudgets(pools.rest, some), time }),
    begin,
    end: calls.end,
    plan,
    quotes: createQuotes({
      time,
      masterKeys: [secrets.master_key, secrets.previous_master_key].filter(isThere),
      contractHash: contracts.current?.contentHash ?? null,
    }),
    firstCall: createFirstCall({
      findOpen: (credentialId, id) => findOpen(pools.rest, [credentialId], id),
      findEnded: (credentialId, id) => findEnded(pools.rest, [credentialId], id),
      clock,
    }),
    mandates,
    growth: createGrowths({ extend: calls.extend, clock }),
    relay: createRelay({ clock, log, ended: (how) => metrics.streams.inc({ how }), drainMs: http.abandoned_stream_ms }),
    records,
    overran,
    clock,
    headerNames,
  })
  const jsonLimits = { ...DEFAULT_LIMITS, jsonDepth: http.json_depth }
  const largeJson = createLargeJson(jsonLimits)
  const tasks = createTasks({ pool: pools.rest, bindings, transport, kind: VIDEO_TASKS, seal })
  const asked = { transport, bindings, links, models, prices, tasks, counter, run, mandates, jsonLimits, largeJson }
  return { ...asked, breakers, records, refusals, losses, overran }
}

type Gateway = ReturnType<typeof createGateway>

/** What is done again and again beside the calls, by the roles of this process. */
function createWork(
  ground: Ground,
  { calls, ownerId }: Money,
  gateway: Gateway & { readonly contracts: Contracts },
  options: Start,
) {
  const { config, log, clock, metrics, pools, ids, seal } = ground
  const { bindings, transport, links, records, refusals, losses, overran, contracts } = gateway
  const polled: Parameters<typeof createPoller>[0]['polled'] = (what) => metrics.taskPolls.inc(what)
  const polling = { bindings, transport, pool: pools.rest, calls, records, clock, log, overran, polled }
  const poller = seal && createPoller({ ...polling, kind: VIDEO_TASKS, seal })
  const { access, allowed_origins: allowedOrigins, refused_networks: refusedNetworks } = config.outbound
  const outbound = createOutbound({ access, allowedOrigins, refusedNetworks, clock, log, metrics })
  const { url, from } = config.mail
  const mail = url && from && createMailDeliverer({ url, from, clock })
  const outbox = createOutboxWorker({
    pool: pools.rest,
    deliverers: options.deliverers?.({ outbound }) ?? new Map(mail && [[MAIL.name, mail]]),
    seal,
    clock,
    log,
    delivered: (what) => metrics.outboxDeliveries.inc(what),
  })
  const oauth = createUpkeep({ pool: pools.rest, ids, seal })
  const notices = noticesOf(ground)
  const isWorker = config.roles.includes('worker')
  const makesCalls = config.roles.includes('gateway') || config.roles.includes('agent')
  const chores = [
    ...(isWorker
      ? createChores({
          pools,
          ownerId,
          poller,
          outbox,
          links,
          oauth,
          notices,
          metrics,
          clock,
          log,
          keptDays: config.contract.kept_days,
          ...{ sendMail: sendMailOf(ground), siteUrl: siteUrlOf(config) },
          sales: contracts.sales,
          salesFreshMs: config.sales.fresh_seconds * 1_000,
        })
      : []),
    ...(makesCalls
      ? [
          createLossChore({ look: losses.look, clock, log }),
          createRefusalChore({ write: refusals.write, clock, log }),
          createUsageChore({ pools, clock, log }),
        ]
      : []),
    createContractChore({ keep: contracts.keep, clock, log }),
    ...(config.roles.includes('site')
      ? [createSalesChore({ sales: contracts.sales, freshMs: config.sales.fresh_seconds * 1_000, clock, log })]
      : []),
  ]
  return { poller, outbound, outbox, mail, chores, makesCalls }
}

type Parts = {
  readonly ground: Ground
  readonly money: Money
  readonly gateway: Gateway
  readonly work: ReturnType<typeof createWork>
  readonly contracts: Contracts
  readonly issuer: ReturnType<typeof createIssuerOf>
  readonly listeners: readonly Listener<ListeningRole>[]
  readonly sitePrices: KeptPrices
  readonly watch: Watch
}

async function start({
  ground,
  money,
  gateway,
  work,
  contracts,
  listeners,
  sitePrices,
  watch,
}: Parts): Promise<App['addresses']> {
  const { log, clock, pools, feed } = ground
  await checkSafety(pools.rest)
  await requireMigrated(pools.rest)
  await requireMasterKey(pools.rest, ground.seal, SEALED_COLUMNS)
  // Whoever is told of it can read it from every process.
  await contracts.keep()
  await money.partitions.start()
  await money.ownership.start()
  // What was reached before must be known before the first call.
  if (work.makesCalls) await gateway.losses.look()
  for (const chore of work.chores) chore.start()
  if (ground.config.roles.includes('site')) {
    // Pages never wait for it from here on.
    await sitePrices.read()
    sitePrices.chore.start()
  }
  feed.start()
  await untilFresh(feed, clock)
  watch.chore.start()
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
  const { ground, money, gateway, work, issuer, listeners, sitePrices, watch } = parts
  const { clock, log, feed, pools } = ground
  const { calls } = money
  const deadlineAtMs = clock.monotonicMs() + (options.deadlineMs ?? 0)
  const drained = await Promise.all(listeners.map(({ edge }) => edge.drain(options)))
  money.partitions.stop()
  await issuer?.close()
  const chored = Promise.all(
    [...work.chores, sitePrices.chore, watch.chore].map((chore) => chore.stop(CHORES_DEADLINE_MS)),
  )
    .then(() => Promise.all([work.poller?.idle(), work.outbox.stop(DELIVERIES_DEADLINE_MS)]))
    .finally(() => {
      work.mail?.close()
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
  await gateway.records.flush(RECORDS_DEADLINE_MS)
  await money.ownership.stop()
  await Promise.all([feed.close(), pools.close(storageDeadlineMs)])
  return drained.reduce((sum, { cutRequests }) => sum + cutRequests, 0)
}

const isThere = <T>(value: T | undefined): value is T => value !== undefined

async function flush(calls: Calls, log: Log): Promise<void> {
  if ((await calls.flush(FLUSH_DEADLINE_MS)) && calls.open().length === 0) return
  log.error('not every call could be ended in time: what is left is unsettled', { count: calls.open().length })
}

/** Who people are. Passwords are hashed by few at a time in the whole process. */
function createPeopleOf({ config, pools, ids, seal }: Ground): People {
  const { people } = config
  return createPeople({
    pool: pools.rest,
    ids,
    seal,
    sendMail: createSendMail({ ids, seal }),
    passwords: createPasswords(),
    async credit(query, accountId, entryId, amount) {
      await creditWithin(query, { entryId, accountId, amount, kind: 'promotion' })
    },
    settings: {
      siteUrl: siteUrlOf(config),
      signUp: missingForPeople(config).length === 0 ? people.sign_up : 'closed',
      domains: people.domains,
      credit: people.credit,
    },
  })
}

/**
 * Who people can sign in by, where the operator says so. Its own origin is listed by being configured; whatever else it names is asked as
 * a stranger's address is.
 */
function createIssuerOf({ config: { people, http, outbound: rules }, clock, log, metrics }: Ground) {
  const { issuer: given } = people
  if (given === undefined || http.site_url === undefined) return null
  const { access, allowed_origins: allowed, refused_networks: refusedNetworks } = rules
  const own = new URL(given.url).origin
  const asked =
    access === 'none'
      ? ({ access: 'listed', allowedOrigins: [own] } as const)
      : { access, allowedOrigins: [own, ...allowed] }
  const outbound = createOutbound({ ...asked, refusedNetworks, clock, log, metrics })
  const { url, client_id: clientId, client_secret: clientSecret, name } = given
  const redirectUri = http.site_url + ISSUER_CALLBACK
  const issuer = createIssuer({ url, clientId, clientSecret, redirectUri, outbound, clock })
  return { issuer, name, log, close: outbound.close }
}

/** Who issues tokens: undefined where nobody does, for want of an address that clients know, or of a key to seal under. */
function issuerOf({ http, secrets }: Config): string | undefined {
  return secrets.master_key === undefined ? undefined : http.site_url
}

/** What the authorization server is made of; null where there is none. */
function authorizationOf(
  { config, pools, ids, clock, log, seal }: Ground,
  outbound: Outbound,
): AuthorizationServerParts | null {
  const { http, oauth } = config
  const siteUrl = issuerOf(config)
  if (seal === null || siteUrl === undefined) return null
  return {
    ...{ pool: pools.rest, ids, clock, log, seal, siteUrl, baseUrl: http.public_url, mcpUrl: http.mcp_url },
    outbound: config.outbound.access === 'none' ? null : outbound,
    attempts: createAttempts({ pool: pools.rest }),
    introspectionSecret: oauth.introspection_secret ?? null,
    tellReuse: createTellReuse({ sendMail: createSendMail({ ids, seal }), grantsUrl: siteUrl + GRANTS_PATH }),
  }
}

/** Tells people of their money; nobody can be told without a master key, under which letters are sealed. */
function noticesOf({ config, pools, ids, seal }: Ground): Notices | null {
  if (seal === null) return null
  const told = { pool: pools.rest, sendMail: createSendMail({ ids, seal }), siteUrl: siteUrlOf(config) }
  return {
    mandates: createMandateNotices(told),
    budgets: createBudgetNotices(told),
    balances: createBalanceNotices({ ...told, low: config.people.low_balance }),
  }
}

/** Letters are sealed, so that nobody is written to without a master key. */
function sendMailOf({ ids, seal }: Pick<Ground, 'ids' | 'seal'>): SendMail {
  return seal === null ? async () => {} : createSendMail({ ids, seal })
}

/** Where people reach the pages. */
function siteUrlOf({ http, listen }: Config): string {
  return http.site_url ?? `http://${listen.site.host}:${listen.site.port}`
}

type Faces = {
  readonly people: People
  readonly issuer: ReturnType<typeof createIssuerOf>
  readonly authorization: AuthorizationServerParts | null
  readonly contracts: Contracts
  readonly sitePrices: KeptPrices
  readonly watch: Watch
}

/** What strangers, callers and people meet. */
function createFaces(ground: Ground, money: Money, gateway: Gateway, faces: Faces, options: Start) {
  const { config, log, clock, metrics, time, ids, cached, headerNames } = ground
  const contractHeaderNames = createContractHeaderNames(config.names.provider)
  return createListeners({
    config,
    edge: {
      clock,
      ids,
      log,
      metrics,
      identify: createIdentify({ ...cached, time, failures: createFailuresByAddress({ clock }) }),
      readiness: () => missingIn(ground),
    },
    headerNames,
    keyRefused: gateway.refusals.count,
    waitMs: money.calls.waitMs,
    families: (shown) => familiesOf(ground, money, gateway, shown, options),
    agent: () => agentFaceOf(ground, money, gateway, options),
    siteRoutes: (pages) => siteFaceOf(ground, { ...gateway, ...faces }, pages, options),
    baseMetadata: baseMetadataOf(config),
    contractFamilies: [
      contractsFamily({ ...faces.contracts, headerNames: contractHeaderNames }),
      salesFamily({ ...faces.contracts, headerNames: contractHeaderNames, now: faces.contracts.sales.now }),
    ],
  })
}

/** What people and clients meet on site_url. */
function siteFaceOf(
  ground: Ground,
  faces: Faces & Pick<Gateway, 'models' | 'counter' | 'breakers' | 'tasks' | 'links'>,
  pages: Pages,
  { catalogue = ours }: Start,
) {
  const { config, pools, ids, clock, headerNames } = ground
  const { people, issuer, authorization: parts, contracts, sitePrices, models, counter } = faces
  const server = parts && createAuthorizationServer(parts, pages)
  const authorization = parts &&
    server && { server, pool: pools.rest, ids, seal: parts.seal, offer: createOffer({ catalogue, models }) }
  const settings = siteSettingsOf(config)
  const { site_url: siteUrl, public_url: baseUrl } = config.http
  return {
    pages: [
      ...createSite({
        ...{ pages, siteUrl, baseUrl, catalogue, names: config.names, headerNames, clock },
        ...{ prices: sitePrices, counter, contract: contracts.current },
        ...{ mcpUrl: config.http.mcp_url, health: healthOf(ground, faces) },
      }),
      ...createSiteRoutes({ people, pages, siteUrl, settings, issuer, authorization }),
    ],
    raw: server === null ? [] : doorRoutes(server),
    account: createAccountApi({
      ...{ ...ground, pool: pools.rest, people, tasks: faces.tasks, links: faces.links },
      ...{ ownUrl: siteUrl, siteUrl: siteUrlOf(config), issuer: issuerOf(config), provider: config.names.provider },
      ...{ operations: catalogue.operations, rerankModels: config.rerank.models, support: config.site.support },
    }),
    faultPage: createSiteFaultPage({ pages, shell: createShell({ pages, siteUrl }) }),
  }
}

/** What a process lacks to serve requests, in words that anybody may read. */
function missingIn({ feed }: Pick<Ground, 'feed'>): readonly string[] {
  return feed.lagMs() < STALE_MS ? [] : ['database']
}

/** What the status page tells: what the health checks know. */
function healthOf(
  ground: Ground,
  { contracts, watch, breakers }: Pick<Faces, 'contracts' | 'watch'> & Pick<Gateway, 'breakers'>,
): Health {
  return {
    readiness: () => missingIn(ground),
    roles: ground.config.roles,
    hasContract: contracts.current !== null,
    sales: contracts.sales.now,
    upstreams: breakers.counts,
    watch,
  }
}

/** What base_url says of who issues tokens for it. */
function baseMetadataOf(config: Config) {
  const { public_url: baseUrl, mcp_url: mcpUrl } = config.http
  const siteUrl = issuerOf(config)
  if (siteUrl === undefined) return null
  const resource = createResources({ siteUrl, baseUrl, mcpUrl }).all.find(({ face }) => face === 'callers')
  if (resource === undefined) return null
  return { path: metadataPathOf(resource.url), metadata: protectedResourceMetadata(resource, siteUrl) }
}

function siteSettingsOf(config: Config): SiteSettings {
  const { sign_up: signUp, credit, issuer } = config.people
  const missing = missingForPeople(config)
  return {
    isSignUpOpen: signUp === 'open' && missing.length === 0,
    missing,
    credit,
    issuer: issuer === undefined ? null : { name: `Continue with ${issuer.name}`, path: ISSUER_PATH },
  }
}

/** What agents reach: five tools on what callers have. */
function agentFaceOf(ground: Ground, { begin }: Money, gateway: Gateway, { catalogue = ours }: Start) {
  const { config, pools, ids, clock, time, log, metrics, headerNames } = ground
  const { http, names } = config
  const { run, mandates, models, prices, tasks, links, jsonLimits, refusals } = gateway
  const metadata = createMetadata({ mcpUrl: http.mcp_url, siteUrl: issuerOf(config) })
  const face = createAgentFace({
    ...{ catalogue, run, begin, mandates, models, prices, tasks, links, ids, names, headerNames, jsonLimits, metadata },
    ...{ clock, time, pool: pools.rest },
    publicUrl: http.public_url,
    version: VERSION,
    provider: names.provider,
    isOurOrigin: createOriginCheck(http.mcp_url, http.cors_origins),
    refused: createToolRefusals({ count: refusals.count, metrics, log }),
  })
  return { ...face, challenge: metadata.challenge }
}

/** What callers reach: the routes of what is sold, unless others are given. */
function familiesOf(
  { config, pools, time, headerNames }: Ground,
  { begin, calls }: Money,
  { run, models, links, tasks, jsonLimits, largeJson }: Gateway,
  shown: { readonly assets: Assets; readonly linkPages: LinkPages },
  { catalogue = ours, families }: Start,
): readonly Family[] {
  if (families !== undefined) return families({ begin, end: calls.end, run })
  const { http, names } = config
  return createFamilies({
    catalogue,
    run,
    begin,
    models,
    tasks,
    links,
    ...shown,
    publicUrl: http.public_url,
    pool: pools.rest,
    time,
    names,
    headerNames,
    jsonLimits,
    largeJson,
    readBudget: createBudgetReader(pools.rest),
    modelBodyBytes: modelBodyBytes(config),
  })
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
