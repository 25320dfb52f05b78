import { VIDEO_TASKS } from '../gateway/plans/video-tasks.ts'
import { createMailDeliverer } from '../mail/deliverer.ts'
import { createBalanceNotices } from '../oauth/balance-notices.ts'
import { createBudgetNotices } from '../oauth/budget-notices.ts'
import { createMandateNotices } from '../oauth/mandate-notices.ts'
import { createUpkeep } from '../oauth/provider/upkeep.ts'
import { createOutbound } from '../outbound/outbound.ts'
import { createOutboxWorker } from '../outbox/worker.ts'
import { createSendMail, MAIL } from '../storage/mail.ts'
import { createPoller } from '../tasks/poller.ts'
import {
  createChores,
  createContractChore,
  createLossChore,
  createRefusalChore,
  createSalesChore,
  createUsageChore,
  type Notices,
} from './chores.ts'
import type { Contracts } from './contracts.ts'
import type { Gateway } from './gateway.ts'
import { type Ground, sendMailOf, siteUrlOf } from './ground.ts'
import type { Money } from './money.ts'
import type { Start } from './options.ts'

/** What is done again and again beside the calls, by the roles of this process. */
export function createWork(
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
          unknownTaskSeconds: config.tasks.unknown_hours * 3_600,
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
