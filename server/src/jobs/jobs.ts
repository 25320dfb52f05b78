import type { OauthUpkeep } from '../authorization/upkeep.ts'
import { pruneEndUsers } from '../budgets/end-users.ts'
import { pruneLosses } from '../calls/losses.ts'
import { resolveOverdue, sweepOrphans } from '../calls/orphans.ts'
import { forgetOwners, pruneClaims } from '../calls/upkeep.ts'
import { pruneContracts } from '../contracts/kept-contracts.ts'
import { REFUSED_CALLS_KEPT_DAYS } from '../gateway/read-refused-calls.ts'
import { pruneRecords } from '../gateway/records.ts'
import { pruneRefusals } from '../gateway/refusals.ts'
import { pruneRefusedCalls } from '../gateway/refused-calls.ts'
import { tellPresumed } from '../gateway/tell-loss.ts'
import { pruneAccessTokens } from '../grants/access-tokens.ts'
import { emptyApprovals, pruneApprovals } from '../grants/approvals.ts'
import { endTickets } from '../identity/end-tickets.ts'
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
import { outboxFigures, pruneOutbox } from '../outbox/operate.ts'
import type { OutboxWorker } from '../outbox/worker.ts'
import { closeWorkspaces } from '../people/close-workspaces.ts'
import { forgetUnconfirmed } from '../people/forget.ts'
import type { Sales } from '../site/sales/sales.ts'
import type { By } from '../storage/audit.ts'
import { pruneChanges } from '../storage/change-log.ts'
import type { SendMail } from '../storage/mail.ts'
import type { Pools } from '../storage/pools.ts'
import { pollLags } from '../tasks/operate.ts'
import type { Poller } from '../tasks/poller.ts'
import { TASK_KEPT_SECONDS } from '../tasks/tasks.ts'
import { expireTasks, expireUnknownTasks, forgetTasks } from '../tasks/upkeep.ts'
import { createJob, type Job } from '../telemetry/job.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { SALES_IN_TIME } from './process-jobs.ts'

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

type JobParts = {
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
export function createJobs(parts: JobParts): readonly Job[] {
  const { pools, ownerId, poller, outbox, links, oauth, notices, metrics, keptDays, unknownTaskSeconds, clock, log } =
    parts
  const { sales, salesFreshMs, sendMail, siteUrl } = parts
  const pool = pools.rest
  const lost = (amount: Nanos) => tellPresumed(metrics, amount)
  const by: By = { actor: `worker ${ownerId}`, origin: { via: 'worker' } }
  const job = (name: string, everyMs: number | (() => number), work: () => Promise<unknown>) =>
    createJob({ name, everyMs, work, clock, log })
  const combining = createCombining(pool, clock)
  return [
    job('orphans', 2 * SECOND_MS, () => sweepOrphans({ pool, log, ownerId, graceSeconds: SWEEP_GRACE_SECONDS })),
    job('unsettled calls', MINUTE_MS, () => resolveOverdue({ pool, log, lost, by }, UNSETTLED_SECONDS)),
    ...(poller === null ? [] : [job('tasks', poller.pauseMs, poller.tick)]),
    job('lag of tasks', 5 * SECOND_MS, () => sayLag(pool, { metrics, log })),
    job('tasks that never ended', MINUTE_MS, () => expireTasks({ pool, log, lost, by }, UNSETTLED_SECONDS)),
    job('tasks that their provider no longer knows', MINUTE_MS, () =>
      expireUnknownTasks({ pool, log, lost, by }, unknownTaskSeconds),
    ),
    job('old tasks', MINUTE_MS, () => forgetTasks(pool, TASK_KEPT_SECONDS)),
    job('outbox', outbox.pauseMs, outbox.tick),
    job('figures of the outbox', 10 * SECOND_MS, () => sayOutbox(pool, metrics)),
    job('old messages', 10 * MINUTE_MS, () => pruneOutbox(pool, OUTBOX_KEPT)),
    job('links', HOUR_MS, () => forgetAttempts(pool)),
    job('links that have ended', MINUTE_MS, () => links.sweep(by)),
    job('people who never confirmed', 10 * MINUTE_MS, () => forgetUnconfirmed(pool)),
    job('workspaces that close', 10 * SECOND_MS, () =>
      closeWorkspaces({ pool, by, sendMail, siteUrl, clock, labelSteps: (accountId) => labelSteps(pool, accountId) }),
    ),
    job('tickets that are over', 10 * SECOND_MS, () => endTickets({ pool, by })),
    job('access tokens that have expired', MINUTE_MS, () => pruneAccessTokens(pool)),
    job('clients and what they left', MINUTE_MS, oauth.prune),
    job('signing keys', HOUR_MS, oauth.rotate),
    ...(notices === null
      ? []
      : [
          job('mandates that are used', 10 * SECOND_MS, notices.mandates),
          job('budgets that are used', 10 * SECOND_MS, notices.budgets),
          job('balances that are low', MINUTE_MS, notices.balances),
        ]),
    job('end users that nobody saw', 10 * MINUTE_MS, () => pruneEndUsers(pool)),
    job('approvals that are over', MINUTE_MS, () => emptyApprovals(pool)),
    job('old approvals', 10 * MINUTE_MS, () => pruneApprovals(pool)),
    job('usage', ADD_UP_MS, () => addUpUsage(pool)),
    job('usage of days that are over', combining.pauseMs, combining.tick),
    job('figures of usage', 10 * SECOND_MS, () => sayTail(pool, metrics)),
    job('promotions', 10 * SECOND_MS, () => expirePromotions(pool)),
    job('claims', 10 * MINUTE_MS, () => pruneClaims(pool)),
    job('change log', 10 * MINUTE_MS, () => pruneChanges(pool, { olderThanMs: HOUR_MS })),
    job('old contracts', HOUR_MS, () => pruneContracts(pool, keptDays)),
    job('what is sold', salesFreshMs / SALES_IN_TIME, sales.make),
    job('request records', 10 * MINUTE_MS, () => pruneRecords(pool, RECORDS_KEPT_DAYS)),
    job('losses', 10 * MINUTE_MS, () => pruneLosses(pool, LOSSES_KEPT_DAYS)),
    job('refused calls', 10 * MINUTE_MS, () => pruneRefusedCalls(pool, REFUSED_CALLS_KEPT_DAYS)),
    job('old refusals', 10 * MINUTE_MS, () => pruneRefusals(pool, REFUSALS_KEPT_DAYS)),
    job('owners', HOUR_MS, () => forgetOwners(pool, 3_600)),
    job('charges', HOUR_MS, () => dropOldCharges({ pool, log, keepDays: CHARGES_KEPT_DAYS })),
    job('old sums of usage', HOUR_MS, () => dropOldUsage(pool, CHARGES_KEPT_DAYS)),
  ]
}

/** Beyond this, callers wait notably longer for what has been made. */
const LATE_SECONDS = 60

async function sayLag(pool: Pools['rest'], { metrics, log }: Pick<JobParts, 'metrics' | 'log'>): Promise<void> {
  const lags = await pollLags(pool)
  metrics.taskPollLagSeconds.reset()
  for (const { slot, seconds } of lags) {
    metrics.taskPollLagSeconds.set({ slot }, seconds)
    if (seconds > LATE_SECONDS)
      log.warn('tasks are asked for late: raise the quota of polls', { upstream: slot, count: Math.round(seconds) })
  }
}

async function sayTail(pool: Pools['rest'], metrics: JobParts['metrics']): Promise<void> {
  const { rows, oldestSeconds } = await tailFigures(pool)
  metrics.usageTailRows.set(rows)
  metrics.usageTailOldestSeconds.set(oldestSeconds)
}

async function sayOutbox(pool: Pools['rest'], metrics: JobParts['metrics']): Promise<void> {
  const figures = await outboxFigures(pool)
  const { outboxWaiting, outboxOldestSeconds, outboxDead } = metrics
  for (const gauge of [outboxWaiting, outboxOldestSeconds, outboxDead]) gauge.reset()
  for (const { kind, waiting, oldest_seconds, dead } of figures) {
    outboxWaiting.set({ kind }, waiting)
    outboxOldestSeconds.set({ kind }, oldest_seconds)
    outboxDead.set({ kind }, dead)
  }
}
