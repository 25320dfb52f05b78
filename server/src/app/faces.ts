import { createMetadata } from '../agent/metadata.ts'
import { createOriginCheck } from '../agent/origins.ts'
import { createToolRefusals } from '../agent/refusals.ts'
import { createAgentFace } from '../agent/server.ts'
import { catalogue as ours } from '../catalogue/catalogue.ts'
import { VERSION } from '../cli/version.ts'
import { type Config, missingForPeople, modelBodyBytes } from '../config.ts'
import { createContractHeaderNames } from '../gateway/header-names.ts'
import type { Family } from '../http/families.ts'
import type { Assets } from '../http/pages/assets.ts'
import type { LinkPages } from '../http/pages/link-page.ts'
import type { Pages } from '../http/pages/page.ts'
import { admit } from '../http/routes/admit.ts'
import { contractsFamily } from '../http/routes/contracts.ts'
import { createFamilies } from '../http/routes/families.ts'
import { salesFamily } from '../http/routes/sales.ts'
import { createFailuresByAddress } from '../identity/failures-by-address.ts'
import { createIdentify } from '../identity/identify.ts'
import type { People } from '../identity/people/people.ts'
import { createBudgetReader } from '../ledger/budget-reader.ts'
import { createOffer } from '../oauth/offer.ts'
import type { SiteSettings } from '../oauth/parts.ts'
import { doorRoutes } from '../oauth/provider/door.ts'
import { createResources, metadataPathOf, protectedResourceMetadata } from '../oauth/provider/resources.ts'
import { type AuthorizationServerParts, createAuthorizationServer } from '../oauth/provider/server.ts'
import { ISSUER_PATH } from '../oauth/routes/issuer.ts'
import { createSiteRoutes } from '../oauth/site-routes.ts'
import { createSiteFaultPage } from '../site/fault-page.ts'
import type { KeptPrices } from '../site/kept-prices.ts'
import { createShell } from '../site/shell.ts'
import { createSite } from '../site/site.ts'
import type { Health } from '../site/status/status.ts'
import type { Watch } from '../site/status/watch.ts'
import { createAccountApi } from './account-api.ts'
import type { Contracts } from './contracts.ts'
import type { Gateway } from './gateway.ts'
import { type Ground, issuerOf, missingIn, siteUrlOf } from './ground.ts'
import { createListeners } from './listeners.ts'
import type { Money } from './money.ts'
import type { Start } from './options.ts'
import type { createIssuerOf } from './people.ts'

export type Faces = {
  readonly people: People
  readonly issuer: ReturnType<typeof createIssuerOf>
  readonly authorization: AuthorizationServerParts | null
  readonly contracts: Contracts
  readonly sitePrices: KeptPrices
  readonly watch: Watch
}

/** What strangers, callers and people meet. */
export function createFaces(ground: Ground, money: Money, gateway: Gateway, faces: Faces, options: Start) {
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
    countUnknown: async (request, reply) => void (await admit(money.begin, 'unknown_route', request, reply)),
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
