import { authorizationRoutes } from '../authorization/requests.ts'
import { createAuthorizationServer } from '../authorization/server.ts'
import { catalogue as ours } from '../catalogue/catalogue.ts'
import { type Config, missingForPeople } from '../config.ts'
import { createConsole } from '../console/console.ts'
import type { Pages } from '../pages/page.ts'
import { sessionOf } from '../people/sessions.ts'
import { createOffer } from '../people-pages/offer.ts'
import type { SiteSettings } from '../people-pages/parts.ts'
import { ISSUER_PATH } from '../people-pages/routes/issuer.ts'
import { createSiteRoutes } from '../people-pages/routes.ts'
import { createSiteFaultPage } from '../site/fault-page.ts'
import { createShell } from '../site/shell.ts'
import { createSite } from '../site/site.ts'
import { createAccountApi } from './account-api.ts'
import type { Contracts } from './contracts.ts'
import type { Gateway } from './gateway.ts'
import { type Infrastructure, issuerOf, siteUrlOf } from './infrastructure.ts'
import type { Start } from './options.ts'
import type { SiteParts } from './people.ts'

/** What people and clients meet on site_url. */
export function createSiteInterface(
  infrastructure: Infrastructure,
  shared: SiteParts & { readonly contracts: Contracts } & Pick<Gateway, 'models' | 'counter' | 'tasks' | 'links'>,
  pages: Pages,
  { catalogue = ours }: Start,
) {
  const { config, pools, ids, clock, headerNames } = infrastructure
  const { people, issuer, authorization: parts, contracts, prices, models, counter } = shared
  const server = parts && createAuthorizationServer(parts, pages)
  const authorization = parts &&
    server && {
      server,
      pool: pools.rest,
      ids,
      seal: parts.seal,
      offer: createOffer({ catalogue, sold: () => prices.now().sold, models }),
    }
  const settings = siteSettingsOf(config)
  const account = createAccountApi({
    ...{
      ...infrastructure,
      pool: pools.rest,
      pagesPool: pools.pages,
      people,
      tasks: shared.tasks,
      links: shared.links,
    },
    ...{ ownUrl: config.http.site_url, siteUrl: siteUrlOf(config), issuer: issuerOf(config) },
    ...{ provider: config.names.provider, operations: catalogue.operations, requestWatch: shared.requestWatch },
    ...{ rerankModels: config.rerank.models, support: config.site.support },
  })
  const { site_url: siteUrl, public_url: baseUrl } = config.http
  const show = new Set(config.site.show)
  return {
    pages: [
      ...createSite({
        ...{ pages, siteUrl, baseUrl, catalogue, names: config.names, headerNames, clock },
        ...{ prices, counter, contract: contracts.current },
        ...{ mcpUrl: config.http.mcp_url, show, processes: shared.processes.now },
      }),
      ...createSiteRoutes({ people, pages, siteUrl, settings, issuer, authorization }),
      ...createConsole({
        ...{ pages, siteUrl, baseUrl, ids, time: infrastructure.time, account: account.inProcess },
        ...{ headerNames, mcpUrl: config.http.mcp_url, provider: config.names.provider },
        operations: catalogue.operations.map(({ id }) => id).toSorted(),
        sessionOf: (token) => sessionOf(pools.pages, token),
      }),
    ],
    raw: server === null ? [] : authorizationRoutes(server),
    account: account.family,
    faultPage: createSiteFaultPage({ pages, shell: createShell({ pages, siteUrl, show }) }),
  }
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
