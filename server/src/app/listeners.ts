import type { Config } from '../config.ts'
import { type AgentRoutes, agentFamilies } from '../http/agent-routes.ts'
import { createEdge, type Edge, type EdgeParts } from '../http/edge.ts'
import type { Family } from '../http/families.ts'
import { createLinkPages, type LinkPages } from '../http/link-page.ts'
import type { Listener } from '../http/listen.ts'
import {
  createAdminPolicy,
  createAgentPolicy,
  createCallersPolicy,
  createSitePolicy,
  homeOf,
  type Policy,
} from '../http/policies.ts'
import { type RawRoute, rawFamily } from '../http/raw-routes.ts'
import { assetsFamily } from '../http/routes/assets.ts'
import { metricsFamily } from '../http/routes/metrics.ts'
import { protectedResourceFamily } from '../http/routes/protected-resource.ts'
import { siteFamily } from '../http/routes/site.ts'
import type { MemoryBudget } from '../kernel/memory-budget.ts'
import { type Assets, loadAssets } from '../pages/assets.ts'
import { createFaultPage, type FaultPage } from '../pages/fault-page.ts'
import type { Label } from '../pages/label.ts'
import { makeLabel } from '../pages/make-label.ts'
import { createPages, type Pages } from '../pages/page.ts'
import type { PageRoute } from '../pages/page-route.ts'
import type { Log } from '../telemetry/log.ts'
import { createShedding } from '../wire/shedding.ts'
import type { HeaderNames } from '../wording/header-names.ts'
import { siteNameOf } from './infrastructure.ts'

export type ListeningRole = Exclude<Config['roles'][number], 'worker'>

type Parts = {
  readonly config: Pick<Config, 'roles' | 'listen' | 'http' | 'names' | 'site'>
  readonly memory: MemoryBudget
  /** What every edge has. */
  readonly edge: Pick<EdgeParts, 'clock' | 'ids' | 'log' | 'metrics' | 'identify' | 'readiness'>
  readonly headerNames: HeaderNames
  readonly refuse: NonNullable<EdgeParts['refuse']>
  readonly countUnknown: NonNullable<EdgeParts['countUnknown']>
  /** How long the next call would wait in our own queues. */
  readonly waitMs: () => number
  /** What callers reach on base_url. */
  readonly families: (shown: { readonly assets: Assets; readonly linkPages: LinkPages }) => readonly Family[]
  /** What agents reach on mcp_url. */
  readonly agent: () => Promise<AgentRoutes & { readonly challenge: NonNullable<Policy['challenge']> }>
  /** What people and clients reach on site_url. */
  readonly siteRoutes: (pages: Pages) => Promise<SiteRoutes>
  /** What base_url says of itself to clients, where tokens are issued for it. */
  readonly baseMetadata: { readonly path: string; readonly metadata: object } | null
  /** What programs read on site_url. */
  readonly contractFamilies: readonly Family[]
}

export type SiteRoutes = {
  readonly pages: readonly PageRoute[]
  /** What the authorization server answers by itself; none where there is none. */
  readonly raw: readonly RawRoute[]
  /** What members reach of their workspaces. */
  readonly account: Family
  /** How what is refused looks there. */
  readonly faultPage: FaultPage
}

/** The most that a client sends to the authorization server. */
const OAUTH_BYTES = 16_384

/** What is listened on, by the roles of this process: each with its policy and its families. */
export async function createListeners(parts: Parts): Promise<readonly Listener<ListeningRole>[]> {
  const { config, edge, headerNames, refuse, countUnknown, waitMs } = parts
  const { families, agent, siteRoutes, contractFamilies, baseMetadata } = parts
  const { http } = config
  const home = homeOf(http.site_url)
  const { clock, log, metrics } = edge
  const shared = { ...edge, ...bounds(parts) }
  const assets = loadAssets(labelOf(config))
  const pages = createPages({ assets, siteUrl: http.site_url })
  // People fill in forms there, and a form is known by its origin.
  const sitePages = createPages({ assets, siteUrl: http.site_url, referrerPolicy: 'strict-origin' })
  const edges: Readonly<Record<ListeningRole, () => Edge | Promise<Edge>>> = {
    gateway: () =>
      createEdge({
        ...shared,
        policy: createCallersPolicy(http.public_url, { home, metadataPath: baseMetadata?.path }),
        countUnknown,
        // Users who link an account come here too.
        faultPage: createFaultPage(pages),
        refuse,
        mustShed: createShedding({ clock, log, waitMs }),
        families: [
          ...families({ assets, linkPages: createLinkPages(pages) }),
          ...(baseMetadata === null ? [] : [protectedResourceFamily(baseMetadata)]),
        ],
        corsOrigins: http.cors_origins,
        exposedHeaders: [...Object.values(headerNames), 'WWW-Authenticate'],
      }),
    site: async () => {
      const routes = await siteRoutes(sitePages)
      return createEdge({
        ...shared,
        policy: createSitePolicy(http.site_url),
        faultPage: routes.faultPage,
        families: [...siteFamilies(routes), assetsFamily(assets), routes.account, ...contractFamilies],
      })
    },
    agent: async () => {
      const routes = await agent()
      return createEdge({
        ...shared,
        policy: createAgentPolicy(http.mcp_url, routes.challenge, home),
        refuse,
        mustShed: createShedding({ clock, log, waitMs }),
        families: agentFamilies(routes, http.body_bytes),
        corsOrigins: http.cors_origins,
        exposedHeaders: ['WWW-Authenticate'],
      })
    },
    admin: () =>
      createEdge({ ...shared, policy: createAdminPolicy(http.admin_hosts), families: [metricsFamily(metrics)] }),
  }
  const roles = config.roles.filter((role) => role !== 'worker')
  return Promise.all(roles.map(async (role) => ({ role, edge: await edges[role](), at: config.listen[role] })))
}

function siteFamilies({ pages, raw }: SiteRoutes): readonly Family[] {
  const oauth = { name: 'oauth', dialect: 'oauth', bodyBytes: OAUTH_BYTES, routes: raw } as const
  return [
    siteFamily(pages),
    ...(raw.length === 0 ? [] : ['/oauth', '/.well-known'].map((prefix) => rawFamily({ ...oauth, prefix }))),
  ]
}

/** Under whose name pages are shown. */
function labelOf(config: Pick<Config, 'site' | 'names'>): Label {
  const { site } = config
  const { logo, accent_light: light, accent_dark: dark, support } = site
  return makeLabel({
    ...{
      name: siteNameOf(config),
      logo,
      support,
      terms: site.terms_url,
      privacy: site.privacy_url,
      imprint: site.imprint_url,
    },
    accent: light === undefined || dark === undefined ? undefined : { light, dark },
  })
}

/** What all of them may take of the process, and of a caller. */
function bounds({
  config: { http },
  memory,
  edge: { log },
}: Parts): Pick<EdgeParts, 'memory' | 'limits' | 'trustedProxies' | 'onUnlistedProxy'> {
  return {
    memory,
    limits: {
      bodyBytes: http.body_bytes,
      headerBytes: http.header_bytes,
      jsonDepth: http.json_depth,
      headersTimeoutMs: http.headers_timeout_ms,
      requestTimeoutMs: http.request_timeout_ms,
      connections: http.connections,
    },
    trustedProxies: http.trusted_proxies ?? [],
    onUnlistedProxy: warnOnce(log),
  }
}

/** Once in a process: anybody may send the header, and a proxy that is not listed sends it with every request. */
function warnOnce(log: Pick<Log, 'warn'>): (peer: string) => void {
  let isWarned = false
  return (address) => {
    if (isWarned) return
    isWarned = true
    log.warn('X-Forwarded-For came from a peer that is not in http.trusted_proxies, and is not believed', { address })
  }
}
