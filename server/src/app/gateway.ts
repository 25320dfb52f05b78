import { createFindEndUser } from '../budgets/end-users.ts'
import { createMakeAllowances } from '../budgets/made-allowances.ts'
import { createLossWatch } from '../calls/loss-ceilings.ts'
import { ceilingsOf } from '../calls/loss-sums.ts'
import { catalogue as ours } from '../catalogue/catalogue.ts'
import { spell } from '../catalogue/operation.ts'
import { createAttribute } from '../gateway/attribution.ts'
import { createCeilingsFor } from '../gateway/ceilings.ts'
import { createDrains } from '../gateway/drains.ts'
import { createGrowths } from '../gateway/growth.ts'
import { createFirstCall } from '../gateway/idempotency.ts'
import { createLossGuard } from '../gateway/loss-guard.ts'
import { createMandates } from '../gateway/mandates.ts'
import { createPipeline } from '../gateway/pipeline.ts'
import { createPlans } from '../gateway/plans/choose.ts'
import { VIDEO_TASKS } from '../gateway/plans/video-tasks.ts'
import { createPlatforms } from '../gateway/platforms.ts'
import { createQuotedAdmission } from '../gateway/quoted-admission.ts'
import { createRecords } from '../gateway/records.ts'
import { createExtend } from '../gateway/refilled-extension.ts'
import { createRefusals } from '../gateway/refusals.ts'
import { createRefuse } from '../gateway/refuse.ts'
import { createRefusedCalls } from '../gateway/refused-calls.ts'
import { createRelay } from '../gateway/relay.ts'
import { createTellLoss } from '../gateway/tell-loss.ts'
import { createTellRefused } from '../gateway/tell-refused.ts'
import { readBudgets } from '../ledger/balance.ts'
import { findOpen } from '../ledger/open-requests.ts'
import { findEnded } from '../ledger/requests.ts'
import { createLinks } from '../links/links.ts'
import { createTellRefusedLink } from '../people/refused-link.ts'
import { createModels } from '../pricing/models.ts'
import { createPrices } from '../pricing/prices.ts'
import { createQuotes } from '../pricing/quotes.ts'
import { createSold } from '../pricing/sold.ts'
import { createSwitches } from '../pricing/switches.ts'
import { FIGURES_MINUTES } from '../processes/report.ts'
import { createTasks } from '../tasks/tasks.ts'
import { DEFAULT_RERANK_MODEL } from '../upstreams/adapters/rerank.ts'
import { createBindings } from '../upstreams/bindings.ts'
import { createBreakers } from '../upstreams/breakers.ts'
import { createUpstreamFigures } from '../upstreams/figures.ts'
import { createQuota } from '../upstreams/quota.ts'
import { createTokenCounter } from '../upstreams/tokens/count-tokens.ts'
import { createTransport } from '../upstreams/transport.ts'
import { createLargeJson } from '../wire/large-json.ts'
import { DEFAULT_LIMITS } from '../wire/limits.ts'
import type { Contracts } from './contracts.ts'
import { type Infrastructure, sendMailOf, siteUrlOf } from './infrastructure.ts'
import type { Money } from './money.ts'
import type { Start } from './options.ts'

/** Whom we ask and what it costs, and the path of a call through all of it. */
export function createGateway(
  infrastructure: Infrastructure,
  money: Money,
  contracts: Contracts,
  { catalogue = ours }: Start,
) {
  const { config, log, clock, metrics, pools, time, ids, seal, cached, headerNames } = infrastructure
  const { calls, begin, requireUnspent, testCredit } = money
  const { http, names, secrets } = config
  const breakers = createBreakers({ clock, metrics, log })
  const figures = createUpstreamFigures({ clock, minutes: FIGURES_MINUTES })
  const transport = createTransport({ clock, metrics, breakers, figures })
  const bindings = createBindings({ ...cached, log, seal })
  const platforms = createPlatforms({ bindings, transport })
  const { offline_access: offlineAccess } = config.links
  const howToLink = spell('Link one: POST /apis/v1/{social_a}/auth_{social_a}.', names)
  const tellRefused = createTellRefusedLink({ sendMail: sendMailOf(infrastructure), siteUrl: siteUrlOf(config) })
  const links = createLinks({
    ...{ pool: pools.rest, seal, ids, clock, log, platforms, offlineAccess, tellRefused, howToLink },
  })
  const models = createModels({ ...cached, catalogue })
  const sold = createSold({ ...cached, catalogue })
  const counter = createTokenCounter()
  const records = createRecords({ pool: pools.rest, clock, log })
  const refusals = createRefusals({ pool: pools.rest, clock, time })
  const refusedCalls = createRefusedCalls({ pool: pools.rest, clock, log, metrics })
  const refuse = createRefuse({ refusals, refusedCalls, log, siteUrl: http.site_url })
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
    refusedBy: createTellRefused({ log, clock, metrics }),
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
  const switches = createSwitches(cached)
  const run = createPipeline({
    switches,
    requireUnspent,
    attribute: createAttribute({ findEndUser: createFindEndUser({ pool: pools.rest, clock }) }),
    ceilingsFor: createCeilingsFor({ makeAllowances: createMakeAllowances({ pool: pools.rest, clock }), time }),
    quotedAdmission: createQuotedAdmission({ readBudgets: (some) => readBudgets(pools.rest, some), time, testCredit }),
    begin,
    end: calls.end,
    plan,
    quotes: createQuotes({
      time,
      masterKeys: [secrets.master_key, secrets.previous_master_key].filter((key) => key !== undefined),
      contractHash: () => contracts.current()?.contentHash ?? null,
    }),
    firstCall: createFirstCall({
      findOpen: (credentialId, id) => findOpen(pools.rest, [credentialId], id),
      findEnded: (credentialId, id) => findEnded(pools.rest, [credentialId], id),
      clock,
    }),
    mandates,
    growth: createGrowths({ extend: createExtend({ extend: calls.extend, testCredit }), clock }),
    drains: createDrains(calls),
    relay: createRelay({ clock, log, ended: (how) => metrics.streams.inc({ how }), drainMs: http.abandoned_stream_ms }),
    records,
    overran,
    clock,
    log,
    headerNames,
  })
  const jsonLimits = { ...DEFAULT_LIMITS, jsonDepth: http.json_depth }
  const largeJson = createLargeJson(jsonLimits)
  const tasks = createTasks({ pool: pools.rest, bindings, transport, kind: VIDEO_TASKS, seal })
  const asked = {
    transport,
    bindings,
    links,
    models,
    sold,
    prices,
    tasks,
    counter,
    run,
    mandates,
    jsonLimits,
    largeJson,
  }
  return { ...asked, breakers, figures, records, refusals, refusedCalls, refuse, losses, overran }
}

export type Gateway = ReturnType<typeof createGateway>
