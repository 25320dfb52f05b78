import { catalogue as ours } from '../catalogue/catalogue.ts'
import { type Config, missingForPeople } from '../config.ts'
import type { Pages } from '../http/pages/page.ts'
import { createOffer } from '../oauth/offer.ts'
import type { SiteSettings } from '../oauth/parts.ts'
import { doorRoutes } from '../oauth/provider/door.ts'
import { createAuthorizationServer } from '../oauth/provider/server.ts'
import { ISSUER_PATH } from '../oauth/routes/issuer.ts'
import { createSiteRoutes } from '../oauth/site-routes.ts'
import { createSiteFaultPage } from '../site/fault-page.ts'
import { createShell } from '../site/shell.ts'
import { createSite } from '../site/site.ts'
import type { Health } from '../site/status/status.ts'
import { createAccountApi } from './account-api.ts'
import type { Contracts } from './contracts.ts'
import type { Gateway } from './gateway.ts'
import { type Ground, issuerOf, missingIn, siteUrlOf } from './ground.ts'
import type { Start } from './options.ts'
import type { SiteParts } from './people.ts'

/** What people and clients meet on site_url. */
export function createSiteFace(
  ground: Ground,
  faces: SiteParts & { readonly contracts: Contracts } & Pick<
      Gateway,
      'models' | 'counter' | 'breakers' | 'tasks' | 'links'
    >,
  pages: Pages,
  { catalogue = ours }: Start,
) {
  const { config, pools, ids, clock, headerNames } = ground
  const { people, issuer, authorization: parts, contracts, prices, models, counter } = faces
  const server = parts && createAuthorizationServer(parts, pages)
  const authorization = parts &&
    server && { server, pool: pools.rest, ids, seal: parts.seal, offer: createOffer({ catalogue, models }) }
  const settings = siteSettingsOf(config)
  const { site_url: siteUrl, public_url: baseUrl } = config.http
  return {
    pages: [
      ...createSite({
        ...{ pages, siteUrl, baseUrl, catalogue, names: config.names, headerNames, clock },
        ...{ prices, counter, contract: contracts.current },
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
  {
    contracts,
    watch,
    breakers,
  }: Pick<SiteParts, 'watch'> & { readonly contracts: Contracts } & Pick<Gateway, 'breakers'>,
): Health {
  const { config } = ground
  return {
    readiness: () => missingIn(ground),
    roles: config.roles,
    hasContract: contracts.current !== null,
    sales: contracts.sales.now,
    upstreams: () => breakers.slots().map(({ slot, isAsked }) => ({ name: wordFor(slot, config.names), isAsked })),
    watch,
  }
}

/** A slot in the operator's own words. */
function wordFor(slot: string, names: Config['names']): string {
  return slot.replace(/^(social_[a-z])/, (word) => Object.entries(names).find(([name]) => name === word)?.[1] ?? word)
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
