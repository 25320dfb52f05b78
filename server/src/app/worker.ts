import { createUpkeep } from '../authorization/upkeep.ts'
import { VIDEO_TASKS } from '../gateway/plans/video-tasks.ts'
import { createJobs, type Notices } from '../jobs/jobs.ts'
import { createMailDeliverer } from '../mail/deliverer.ts'
import { createBalanceNotices } from '../notices/balance.ts'
import { createBudgetNotices } from '../notices/budgets.ts'
import { createMandateNotices } from '../notices/mandates.ts'
import type { Outbound } from '../outbound/outbound.ts'
import { createOutboxWorker } from '../outbox/worker.ts'
import { createSendMail, MAIL } from '../storage/mail.ts'
import { createPoller } from '../tasks/poller.ts'
import type { Contracts } from './contracts.ts'
import type { Gateway } from './gateway.ts'
import { type Infrastructure, sendMailOf, siteNameOf, siteUrlOf } from './infrastructure.ts'
import type { Money } from './money.ts'
import type { Start } from './options.ts'

type Parts = Gateway & { readonly contracts: Contracts; readonly outbound: Outbound }

/** What somebody has to do in every installation: tasks are polled, messages delivered, what is old is dropped. */
export function createWorker(infrastructure: Infrastructure, { calls, ownerId }: Money, parts: Parts, options: Start) {
  const { config, log, clock, metrics, pools, ids, seal } = infrastructure
  const { bindings, transport, links, records, overran, contracts, outbound } = parts
  const polled: Parameters<typeof createPoller>[0]['polled'] = (what) => metrics.taskPolls.inc(what)
  const polling = { bindings, transport, pool: pools.rest, calls, records, clock, log, overran, polled }
  const poller = seal && createPoller({ ...polling, kind: VIDEO_TASKS, seal })
  const { url, from } = config.mail
  const brand = { name: siteNameOf(config), logo: config.site.logo }
  const mail = url && from && createMailDeliverer({ url, from, brand, clock })
  const outbox = createOutboxWorker({
    pool: pools.rest,
    deliverers: options.deliverers?.({ outbound }) ?? new Map(mail && [[MAIL.name, mail]]),
    seal,
    clock,
    log,
    delivered: (what) => metrics.outboxDeliveries.inc(what),
  })
  const jobs = createJobs({
    ...{ pools, ownerId, poller, outbox, links, metrics, clock, log, notices: noticesOf(infrastructure) },
    ...{ oauth: createUpkeep({ pool: pools.rest, ids, seal }), keptDays: config.contract.kept_days },
    unknownTaskSeconds: config.tasks.unknown_hours * 3_600,
    ...{ sendMail: sendMailOf(infrastructure), siteUrl: siteUrlOf(config) },
    ...{ sales: contracts.sales, salesFreshMs: config.sales.fresh_seconds * 1_000 },
  })
  return {
    jobs,
    idle: (deadlineMs: number) => Promise.all([poller?.idle(), outbox.stop(deadlineMs)]),
    close: () => mail?.close(),
  }
}

/** Tells people of their money; nobody can be told without a master key, under which letters are sealed. */
function noticesOf({ config, pools, ids, seal }: Infrastructure): Notices | null {
  if (seal === null) return null
  const told = { pool: pools.rest, sendMail: createSendMail({ ids, seal }), siteUrl: siteUrlOf(config) }
  return {
    mandates: createMandateNotices(told),
    budgets: createBudgetNotices(told),
    balances: createBalanceNotices({ ...told, low: config.people.low_balance }),
  }
}
