import { createMetadata } from '../agent/metadata.ts'
import { createOriginCheck } from '../agent/origins.ts'
import { createToolRefusals } from '../agent/refusals.ts'
import { createAgentServer } from '../agent/server.ts'
import { catalogue as ours } from '../catalogue/catalogue.ts'
import { VERSION } from '../cli/version.ts'
import type { Gateway } from './gateway.ts'
import { type Infrastructure, issuerOf } from './infrastructure.ts'
import type { Money } from './money.ts'
import type { Start } from './options.ts'

/** What agents reach: five tools on what callers have. */
export function createAgent(
  infrastructure: Infrastructure,
  { begin }: Money,
  gateway: Gateway,
  { catalogue = ours }: Start,
) {
  const { config, pools, ids, clock, time, log, metrics, headerNames } = infrastructure
  const { http, names } = config
  const { run, models, sold, prices, tasks, links, jsonLimits, refuse } = gateway
  const metadata = createMetadata({ mcpUrl: http.mcp_url, siteUrl: issuerOf(config) })
  const server = createAgentServer({
    ...{ catalogue, run, begin, models, sold, prices, tasks, links, ids, names, headerNames, jsonLimits, metadata },
    ...{ clock, time, pool: pools.rest },
    publicUrl: http.public_url,
    version: VERSION,
    provider: names.provider,
    isOurOrigin: createOriginCheck(http.mcp_url, http.cors_origins),
    refused: createToolRefusals({ refuse, metrics, log }),
  })
  return { ...server, challenge: metadata.challenge }
}
