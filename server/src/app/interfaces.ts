import { createResources, metadataPathOf, protectedResourceMetadata } from '../authorization/resources.ts'
import { admit } from '../callers/admit.ts'
import { catalogue as ours } from '../catalogue/catalogue.ts'
import { type Config, modelBodyBytes } from '../config.ts'
import { callerOf } from '../http/caller.ts'
import type { Family } from '../http/families.ts'
import type { LinkPages } from '../http/link-page.ts'
import { contractsFamily } from '../http/routes/contracts.ts'
import { createFamilies } from '../http/routes/families.ts'
import { salesFamily } from '../http/routes/sales.ts'
import { createFailuresByAddress } from '../identity/failures-by-address.ts'
import { createIdentify } from '../identity/identify.ts'
import { createBudgetReader } from '../ledger/budget-reader.ts'
import type { Assets } from '../pages/assets.ts'
import { createContractHeaderNames } from '../wording/header-names.ts'
import type { Contracts } from './contracts.ts'
import type { Gateway } from './gateway.ts'
import { type Infrastructure, issuerOf, missingIn } from './infrastructure.ts'
import { createListeners } from './listeners.ts'
import type { Money } from './money.ts'
import type { Start } from './options.ts'
import type { SiteParts } from './people.ts'

export type InterfaceParts = {
  readonly contracts: Contracts
  /** Null where this process has not the role. */
  readonly site: SiteParts | null
}

/** What strangers, callers and people meet. What only some roles need is loaded by them. */
export function createInterfaces(
  infrastructure: Infrastructure,
  money: Money,
  gateway: Gateway,
  { contracts, site }: InterfaceParts,
  options: Start,
) {
  const { config, log, clock, metrics, memory, time, ids, cached, headerNames } = infrastructure
  const contractHeaderNames = createContractHeaderNames(config.names.provider)
  return createListeners({
    config,
    memory,
    edge: {
      clock,
      ids,
      log,
      metrics,
      identify: createIdentify({ ...cached, time, failures: createFailuresByAddress({ clock }) }),
      readiness: () => missingIn(infrastructure),
    },
    headerNames,
    refuse: gateway.refuse,
    async countUnknown(request, reply) {
      reply.headers(await admit(money.begin, { id: request.id, caller: callerOf(request) }, 'unknown_route'))
    },
    waitMs: money.calls.waitMs,
    families: (shown) => familiesOf(infrastructure, money, gateway, shown, options),
    async agent() {
      const { createAgent } = await import('./agent.ts')
      return createAgent(infrastructure, money, gateway, options)
    },
    async siteRoutes(pages) {
      if (site === null) throw new Error('the website has no parts in this process')
      const { createSiteInterface } = await import('./site.ts')
      return createSiteInterface(infrastructure, { ...gateway, ...site, contracts }, pages, options)
    },
    baseMetadata: baseMetadataOf(config),
    contractFamilies: [
      contractsFamily({ ...contracts, headerNames: contractHeaderNames }),
      salesFamily({ ...contracts, headerNames: contractHeaderNames, now: contracts.sales.now }),
    ],
  })
}

/** What base_url says of who issues tokens for it. */
function baseMetadataOf(config: Config) {
  const { public_url: baseUrl, mcp_url: mcpUrl } = config.http
  const siteUrl = issuerOf(config)
  if (siteUrl === undefined) return null
  const resource = createResources({ siteUrl, baseUrl, mcpUrl }).all.find(({ name }) => name === 'callers')
  if (resource === undefined) return null
  return { path: metadataPathOf(resource.url), metadata: protectedResourceMetadata(resource, siteUrl) }
}

/** What callers reach: the routes of what is sold, unless others are given. */
function familiesOf(
  { config, pools, time, headerNames }: Infrastructure,
  { begin, calls }: Money,
  { run, models, sold, links, tasks, jsonLimits, largeJson }: Gateway,
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
    sold,
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
