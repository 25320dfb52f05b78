import type { Config } from './config.ts'
import { createEdge, type Edge, type EdgeParts } from './http/edge.ts'
import type { Family } from './http/families.ts'
import { type Clock, systemClock } from './kernel/clock.ts'
import { Fault } from './kernel/fault.ts'
import { createIds } from './kernel/ids.ts'
import { type ChangeFeed, createChangeFeed } from './storage/change-feed.ts'
import { requireMigrated } from './storage/migrate.ts'
import { createPools } from './storage/pools.ts'
import { checkSafety } from './storage/safety.ts'
import { createLog } from './telemetry/log.ts'
import { createMetrics, type Metrics } from './telemetry/metrics.ts'

export type App = {
  readonly addresses: Readonly<Partial<Record<Role, string>>>
  /** Finishes what was accepted within the deadline and lets go of everything. */
  readonly stop: () => Promise<void>
}

type Role = Config['roles'][number]

/** Beyond this the process no longer knows of revoked keys and changed prices in time, and says that it is unready. */
const STALE_MS = 5_000
const START_DEADLINE_MS = 10_000

/** The composition root: makes every part from the configuration, once, and hands each what it uses. */
export async function startApp(config: Config, write: (line: string) => void): Promise<App> {
  const { database, http, listen, roles } = config
  const clock = systemClock
  const log = createLog({ level: config.log.level, write, secrets: [database.url] })
  const metrics = createMetrics()
  const pools = createPools({
    url: database.url,
    log,
    moneyConnections: database.money_connections,
    restConnections: database.rest_connections,
  })
  const feed = createChangeFeed({ url: database.url, log, clock, metrics })
  const closeStorage = () => Promise.all([feed.close(), pools.close()])

  try {
    await checkSafety(pools.rest)
    await requireMigrated(pools.rest)
    feed.start()
    await untilFresh(feed, clock)

    const shared: Omit<EdgeParts, 'families'> = {
      clock,
      ids: createIds({ clock }),
      log,
      metrics,
      // Nobody has a credential yet, so nobody's is valid.
      identify: () => {
        throw new Fault('invalid_credential')
      },
      readiness: () => (feed.lagMs() < STALE_MS ? [] : ['database']),
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
    const edges: Readonly<Record<Role, () => Edge>> = {
      gateway: () => createEdge({ ...shared, families: [] }),
      admin: () => createEdge({ ...shared, corsOrigins: [], families: [metricsFamily(metrics)] }),
    }

    const started = await Promise.all(
      roles.map(async (role) => {
        const edge = edges[role]()
        const { host } = listen[role]
        const { port } = await edge.listen(listen[role])
        log.info('listening', { role, host, port })
        return { role, edge, url: `http://${host.includes(':') ? `[${host}]` : host}:${port}` }
      }),
    )

    return {
      addresses: Object.fromEntries(started.map(({ role, url }) => [role, url])),
      async stop() {
        log.info('stopping')
        const drained = await Promise.all(
          started.map(({ edge }) => edge.drain({ pauseMs: http.drain_pause_ms, deadlineMs: http.drain_ms })),
        )
        await closeStorage()
        log.info('stopped', {
          count: drained.reduce((sum, { cutRequests }) => sum + cutRequests, 0),
          reason: 'requests cut',
        })
      },
    }
  } catch (error) {
    await closeStorage()
    throw error
  }
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
