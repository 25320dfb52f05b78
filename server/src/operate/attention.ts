import { formatUsd } from '../kernel/money.ts'
import type { HeldMoney } from '../ledger/held.ts'
import type { OutboxFigures } from '../outbox/operate.ts'
import { isReady, isStarting, type ProcessView } from '../processes/processes.ts'
import type { UpstreamView } from '../processes/upstreams.ts'
import { ageText, percent } from './columns.ts'

/** What an operator has to look at, and what to do. */
export type Attention = { readonly what: string; readonly todo: string }

type Given = {
  readonly nowMs: number
  readonly processes: readonly ProcessView[]
  /** Those that are configured, as processes see them. */
  readonly upstreams: readonly (UpstreamView & { readonly mode: string })[]
  readonly held: Readonly<Record<'live' | 'test', HeldMoney>>
  readonly outbox: readonly OutboxFigures[]
  /** Since when usage waits to be added up. */
  readonly usageSeconds: number
  /** Routes that a loss ceiling has stopped, for all accounts or for some. */
  readonly stoppedRoutes: readonly string[]
}

const NEEDED_ROLES = ['gateway', 'worker'] as const
const BUSY = 0.9
const FAILED_SHARE = 0.2
const FAILED_LEAST = 10
const OUTBOX_SECONDS = 600
const USAGE_SECONDS = 60

/** The most urgent first. */
export function attentionTo(given: Given): readonly Attention[] {
  return [
    ...missingRoles(given),
    ...given.processes.flatMap((one) => ofProcess(one, given.nowMs)),
    ...mixed(given.processes),
    ...given.upstreams.flatMap(ofUpstream),
    ...ofMoney(given),
    ...ofWork(given),
  ]
}

function missingRoles({ processes }: Given): readonly Attention[] {
  const live = processes.filter(({ isAlive, report }) => isAlive && report !== null)
  const roles = new Set(live.flatMap(({ report }) => report?.roles ?? []))
  return NEEDED_ROLES.filter((role) => !roles.has(role)).map((role) => ({
    what: `No process with the role ${role} runs.`,
    todo: 'farebox serve',
  }))
}

export function processName({ id, report }: ProcessView): string {
  return report === null ? id : `${report.host} ${report.pid}`
}

function ofProcess(one: ProcessView, nowMs: number): readonly Attention[] {
  const { isAlive, seenAt, report } = one
  const name = `Process ${processName(one)}`
  if (!isAlive)
    return [
      {
        what: `${name} was last seen ${ageText((nowMs - seenAt.getTime()) / 1_000)} ago: it died, or cannot reach PostgreSQL.`,
        todo: 'look at its log; its open calls become unsettled: farebox ledger unsettled',
      },
    ]
  if (report === null) return []
  const { changesLagMs, eventLoop, memory } = report
  const lag = changesLagMs === null ? 'has not read the change log' : `is ${ageText(changesLagMs / 1_000)} behind`
  return [
    ...(isReady(one) || isStarting(one)
      ? []
      : [{ what: `${name} ${lag}: it may use old keys and prices.`, todo: 'look at its log, and at PostgreSQL' }]),
    ...(eventLoop < BUSY
      ? []
      : [{ what: `${name} is busy ${percent(eventLoop, 1)} of the time.`, todo: 'add processes' }]),
    ...(memory.waiting === 0
      ? []
      : [
          {
            what: `${name}: ${memory.waiting} calls wait for memory.`,
            todo: 'raise memory.budget_bytes, or add processes',
          },
        ]),
  ]
}

function mixed(processes: readonly ProcessView[]): readonly Attention[] {
  const reports = processes.flatMap(({ isAlive, report }) => (isAlive && report !== null ? [report] : []))
  const versions = [...new Set(reports.map(({ version }) => version))].sort()
  const contracts = new Set(reports.map(({ contract }) => contract))
  if (versions.length > 1)
    return [{ what: `Processes have different versions: ${versions.join(', ')}.`, todo: 'finish the upgrade' }]
  if (contracts.size > 1)
    return [{ what: 'Processes serve different contracts: their settings differ.', todo: 'farebox config check' }]
  return []
}

function ofUpstream({ id, name, mode, state, since, asked, failed }: Given['upstreams'][number]): readonly Attention[] {
  const from = since === null ? '' : ` since ${since.toISOString()}`
  const todo = `see the log for the reason; farebox upstreams off ${id}`
  if (state === 'down') return [{ what: `Upstream ${name} (${mode}) is down${from}.`, todo }]
  if (state === 'partly') return [{ what: `Upstream ${name} (${mode}) is down for some processes${from}.`, todo }]
  if (asked < FAILED_LEAST || failed < FAILED_SHARE * asked) return []
  return [{ what: `Upstream ${name} (${mode}) failed ${percent(failed, asked)} of ${asked} requests.`, todo }]
}

function ofMoney({ held, stoppedRoutes, nowMs }: Given): readonly Attention[] {
  const { live } = held
  return [
    ...(live.unsettledCalls === 0
      ? []
      : [
          {
            what: `${live.unsettledCalls} unsettled calls hold ${formatUsd(live.unsettled)} USD, the oldest for ${ageText((nowMs - (live.unsettledSince?.getTime() ?? nowMs)) / 1_000)}.`,
            todo: 'farebox ledger unsettled',
          },
        ]),
    ...stoppedRoutes.map((route) => ({ what: `A loss limit has stopped ${route}.`, todo: 'farebox losses' })),
  ]
}

function ofWork({ outbox, usageSeconds }: Given): readonly Attention[] {
  const dead = outbox.reduce((sum, one) => sum + one.dead, 0)
  const oldest = Math.max(0, ...outbox.filter(({ waiting }) => waiting > 0).map((one) => one.oldest_seconds))
  return [
    ...(dead === 0 ? [] : [{ what: `${dead} messages could not be delivered.`, todo: 'farebox outbox' }]),
    ...(oldest < OUTBOX_SECONDS
      ? []
      : [{ what: `A message waits for delivery since ${ageText(oldest)}.`, todo: 'farebox outbox' }]),
    ...(usageSeconds < USAGE_SECONDS
      ? []
      : [
          {
            what: `Usage waits to be added up since ${ageText(usageSeconds)}: reports get slower.`,
            todo: 'check that a process with the role worker runs',
          },
        ]),
  ]
}
