import { pruneLosses } from '../calls/losses.ts'
import { resolveOverdue, sweepOrphans } from '../calls/orphans.ts'
import { forgetOwners, pruneClaims } from '../calls/upkeep.ts'
import { pruneContracts } from '../contracts/kept-contracts.ts'
import { pruneRecords } from '../gateway/records.ts'
import { pruneRefusals } from '../gateway/refusals.ts'
import { tellPresumed } from '../gateway/tell-loss.ts'
import { pruneAccessTokens } from '../identity/access-tokens.ts'
import { emptyApprovals, pruneApprovals } from '../identity/approvals.ts'
import { closeWorkspaces } from '../identity/close-workspaces.ts'
import { pruneEndUsers } from '../identity/end-users.ts'
import { forgetUnconfirmed } from '../identity/people/forget.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Id } from '../kernel/ids.ts'
import type { Nanos } from '../kernel/money.ts'
import { addUpUsage, tailFigures } from '../ledger/add-up-usage.ts'
import { createCombining } from '../ledger/combine-usage-days.ts'
import { expirePromotions } from '../ledger/credit.ts'
import { labelSteps } from '../ledger/erase-labels.ts'
import { CHARGES_KEPT_DAYS, dropOldCharges, dropOldUsage } from '../ledger/retention.ts'
import { forgetAttempts } from '../links/attempts.ts'
import type { Links } from '../links/links.ts'
import type { OauthUpkeep } from '../oauth/provider/upkeep.ts'
import { outboxFigures, pruneOutbox } from '../outbox/operate.ts'
import type { OutboxWorker } from '../outbox/worker.ts'
import type { Sales } from '../site/sales/sales.ts'
import type { By } from '../storage/audit.ts'
import { pruneChanges } from '../storage/change-log.ts'
import type { SendMail } from '../storage/mail.ts'
import type { Pools } from '../storage/pools.ts'
import { pollLags } from '../tasks/operate.ts'
import type { Poller } from '../tasks/poller.ts'
import { TASK_KEPT_SECONDS } from '../tasks/tasks.ts'
import { expireTasks, expireUnknownTasks, forgetTasks } from '../tasks/upkeep.ts'
import { type Chore, createChore } from '../telemetry/chore.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { SALES_IN_TIME } from './process-chores.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
/** As long as a lease: who lives has renewed it by then. */
const SWEEP_GRACE_SECONDS = 10
const UNSETTLED_SECONDS = 24 * 3_600
const RECORDS_KEPT_DAYS = 30
const LOSSES_KEPT_DAYS = 30
const REFUSALS_KEPT_DAYS = 30
/** What is not added up yet, every report reads. What a key has called meanwhile is added to each of its sums at once, so that PostgreSQL has less to do the longer this is. */
const ADD_UP_MS = 10 * SECOND_MS
const OUTBOX_KEPT = { deliveredDays: 7, deadDays: 90 }

/** Tells people of mandates and budgets that are used up, or nearly, and of a balance that is low. */
export type Notices = Readonly<Record<'mandates' | 'budgets' | 'balances', () => Promise<void>>>

type ChoreParts = {
  readonly pools: Pools
  readonly ownerId: Id
  /** Null without a master key: then there are no tasks. */
  readonly poller: Poller | null
  readonly outbox: Pick<OutboxWorker, 'tick' | 'pauseMs'>
  readonly links: Pick<Links, 'sweep'>
  readonly oauth: OauthUpkeep
  /** Null without a master key: then nobody can be written to. */
  readonly notices: Notices | null
  readonly metrics: Pick<
    Metrics,
    | 'taskPollLagSeconds'
    | 'lossUsd'
    | 'outboxWaiting'
    | 'outboxOldestSeconds'
    | 'outboxDead'
    | 'usageTailRows'
    | 'usageTailOldestSeconds'
  >
  /** For how many days contracts are kept. */
  readonly keptDays: number
  /** How long a provider may say that it does not know a task. */
  readonly unknownTaskSeconds: number
  readonly sendMail: SendMail
  /** Where people reach the pages. */
  readonly siteUrl: string
  readonly sales: Pick<Sales, 'make'>
  /** For how long a snapshot of what is sold counts as fresh. */
  readonly salesFreshMs: number
  readonly clock: Clock
  readonly log: Log
}

/** What somebody has to do in every installation; any number of processes may. */
export function createChores(parts: ChoreParts): readonly Chore[] {
  const { pools, ownerId, poller, outbox, links, oauth, notices, metrics, keptDays, unknownTaskSeconds, clock, log } =
    parts
  const { sales, salesFreshMs, sendMail, siteUrl } = parts
  const pool = pools.rest
  const lost = (amount: Nanos) => tellPresumed(metrics, amount)
  const by: By = { actor: `worker ${ownerId}`, origin: { via: 'worker' } }
  const chore = (name: string, everyMs: number | (() => number), work: () => Promise<unknown>) =>
    createChore({ name, everyMs, work, clock, log })
  const combining = createCombining(pool, clock)
  return [
    chore('orphans', 2 * SECOND_MS, () => sweepOrphans({ pool, log, ownerId, graceSeconds: SWEEP_GRACE_SECONDS })),
    chore('unsettled calls', MINUTE_MS, () => resolveOverdue({ pool, log, lost, by }, UNSETTLED_SECONDS)),
    ...(poller === null ? [] : [chore('tasks', poller.pauseMs, poller.tick)]),
    chore('lag of tasks', 5 * SECOND_MS, () => sayLag(pool, { metrics, log })),
    chore('tasks that never ended', MINUTE_MS, () => expireTasks({ pool, log, lost, by }, UNSETTLED_SECONDS)),
    chore('tasks that their provider no longer knows', MINUTE_MS, () =>
      expireUnknownTasks({ pool, log, lost, by }, unknownTaskSeconds),
    ),
    chore('old tasks', MINUTE_MS, () => forgetTasks(pool, TASK_KEPT_SECONDS)),
    chore('outbox', outbox.pauseMs, outbox.tick),
    chore('figures of the outbox', 10 * SECOND_MS, () => sayOutbox(pool, metrics)),
    chore('old messages', 10 * MINUTE_MS, () => pruneOutbox(pool, OUTBOX_KEPT)),
    chore('links', HOUR_MS, () => forgetAttempts(pool)),
    chore('links that have ended', MINUTE_MS, () => links.sweep(by)),
    chore('people who never confirmed', 10 * MINUTE_MS, () => forgetUnconfirmed(pool)),
    chore('workspaces that close', 10 * SECOND_MS, () =>
      closeWorkspaces({ pool, by, sendMail, siteUrl, clock, labelSteps: (accountId) => labelSteps(pool, accountId) }),
    ),
    chore('access tokens that have expired', MINUTE_MS, () => pruneAccessTokens(pool)),
    chore('clients and what they left', MINUTE_MS, oauth.prune),
    chore('signing keys', HOUR_MS, oauth.rotate),
    ...(notices === null
      ? []
      : [
          chore('mandates that are used', 10 * SECOND_MS, notices.mandates),
          chore('budgets that are used', 10 * SECOND_MS, notices.budgets),
          chore('balances that are low', MINUTE_MS, notices.balances),
        ]),
    chore('end users that nobody saw', 10 * MINUTE_MS, () => pruneEndUsers(pool)),
    chore('approvals that are over', MINUTE_MS, () => emptyApprovals(pool)),
    chore('old approvals', 10 * MINUTE_MS, () => pruneApprovals(pool)),
    chore('usage', ADD_UP_MS, () => addUpUsage(pool)),
    chore('usage of days that are over', combining.pauseMs, combining.tick),
    chore('figures of usage', 10 * SECOND_MS, () => sayTail(pool, metrics)),
    chore('promotions', 10 * SECOND_MS, () => expirePromotions(pool)),
    chore('claims', 10 * MINUTE_MS, () => pruneClaims(pool)),
    chore('change log', 10 * MINUTE_MS, () => pruneChanges(pool, { olderThanMs: HOUR_MS })),
    chore('old contracts', HOUR_MS, () => pruneContracts(pool, keptDays)),
    chore('what is sold', salesFreshMs / SALES_IN_TIME, sales.make),
    chore('request records', 10 * MINUTE_MS, () => pruneRecords(pool, RECORDS_KEPT_DAYS)),
    chore('losses', 10 * MINUTE_MS, () => pruneLosses(pool, LOSSES_KEPT_DAYS)),
    chore('old refusals', 10 * MINUTE_MS, () => pruneRefusals(pool, REFUSALS_KEPT_DAYS)),
    chore('owners', HOUR_MS, () => forgetOwners(pool, 3_600)),
    chore('charges', HOUR_MS, () => dropOldCharges({ pool, log, keepDays: CHARGES_KEPT_DAYS })),
    chore('old sums of usage', HOUR_MS, () => dropOldUsage(pool, CHARGES_KEPT_DAYS)),
  ]
}

/** Beyond this, callers wait notably longer for what has been made. */
const LATE_SECONDS = 60

async function sayLag(pool: Pools['rest'], { metrics, log }: Pick<ChoreParts, 'metrics' | 'log'>): Promise<void> {
  const lags = await pollLags(pool)
  metrics.taskPollLagSeconds.reset()
  for (const { slot, seconds } of lags) {
    metrics.taskPollLagSeconds.set({ slot }, seconds)
    if (seconds > LATE_SECONDS)
      log.warn('tasks are asked for late: raise the quota of polls', { upstream: slot, count: Math.round(seconds) })
  }
}

async function sayTail(pool: Pools['rest'], metrics: ChoreParts['metrics']): Promise<void> {
  const { rows, oldestSeconds } = await tailFigures(pool)
  metrics.usageTailRows.set(rows)
  metrics.usageTailOldestSeconds.set(oldestSeconds)
}

async function sayOutbox(pool: Pools['rest'], metrics: ChoreParts['metrics']): Promise<void> {
  const figures = await outboxFigures(pool)
  const { outboxWaiting, outboxOldestSeconds, outboxDead } = metrics
  for (const gauge of [outboxWaiting, outboxOldestSeconds, outboxDead]) gauge.reset()
  for (const { kind, waiting, oldest_seconds, dead } of figures) {
    outboxWaiting.set({ kind }, waiting)
    outboxOldestSeconds.set({ kind }, oldest_seconds)
    outboxDead.set({ kind }, dead)
  }
}
