import { createDatabaseTime } from '../calls/ownership.ts'
import type { Config } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { createIds } from '../kernel/ids.ts'
import { createMemoryBudget } from '../kernel/memory-budget.ts'
import { sealOf } from '../kernel/seal.ts'
import { createChangeFeed } from '../storage/change-feed.ts'
import { createSendMail, type SendMail } from '../storage/mail.ts'
import { createPools } from '../storage/pools.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createHeaderNames } from '../wording/header-names.ts'
import type { Start } from './options.ts'

/** Beyond this the process no longer knows of revoked keys and changed prices in time, and says that it is unready. */
export const STALE_MS = 5_000

/** What everything else stands on: PostgreSQL and its change log, clocks, figures, the master key. */
export function createInfrastructure(config: Config, { log, clock = systemClock }: Start) {
  const { database, names, secrets } = config
  const metrics = createMetrics()
  const memory = createMemoryBudget({ totalBytes: config.memory.budget_bytes, clock })
  metrics.watchMemory(memory)
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
    /** For bodies and answers of all listeners. */
    memory,
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

export type Infrastructure = ReturnType<typeof createInfrastructure>

/** What a process lacks to serve requests, in words that anybody may read. */
export function missingIn({ feed }: Pick<Infrastructure, 'feed'>): readonly string[] {
  return feed.lagMs() < STALE_MS ? [] : ['database']
}

/** Letters are sealed, so that nobody is written to without a master key. */
export function sendMailOf({ ids, seal }: Pick<Infrastructure, 'ids' | 'seal'>): SendMail {
  return seal === null ? async () => {} : createSendMail({ ids, seal })
}

/** Where people reach the pages. */
export function siteUrlOf({ http, listen }: Config): string {
  return http.site_url ?? `http://${listen.site.host}:${listen.site.port}`
}

/** Under which name people know this installation. */
export function siteNameOf({ site, names }: Pick<Config, 'site' | 'names'>): string {
  return site.name ?? names.provider
}

/** Who issues tokens: undefined where nobody does, for want of an address that clients know, or of a key to seal under. */
export function issuerOf({ http, secrets }: Config): string | undefined {
  return secrets.master_key === undefined ? undefined : http.site_url
}
