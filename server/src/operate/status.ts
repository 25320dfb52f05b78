import { formatUsd } from '../kernel/money.ts'
import { tailFigures } from '../ledger/add-up-usage.ts'
import { heldMoney } from '../ledger/held.ts'
import { outboxFigures } from '../outbox/operate.ts'
import { type ProcessView, readProcesses } from '../processes/processes.ts'
import { FIGURES_MINUTES, type ProcessReport } from '../processes/report.ts'
import { type UpstreamView, upstreamsOf } from '../processes/upstreams.ts'
import { listUpstreams, type UpstreamListed } from '../upstreams/configure.ts'
import { action, type OperatorParts } from './action.ts'
import { attentionTo, processName } from './attention.ts'
import { ageText, inColumns, percent } from './columns.ts'
import { NO_INPUT } from './fields.ts'
import { readLosses } from './losses.ts'

const status = action({
  name: 'status',
  summary:
    'show the installation now, over all processes: processes, upstreams, held money, outbox, and what needs attention',
  effect: 'reads',
  positional: [],
  input: NO_INPUT,
  run: readStatus,
  lines: (now) => [...attentionLines(now), '', ...processLines(now), '', ...upstreamLines(now), '', ...moneyLines(now)],
})

async function readStatus({ pool, clock, settings }: Pick<OperatorParts, 'pool' | 'clock' | 'settings'>) {
  const [processes, configured, held, outbox, usage, { routes }] = await Promise.all([
    readProcesses(pool),
    listUpstreams({ pool }),
    heldMoney(pool),
    outboxFigures(pool),
    tailFigures(pool),
    readLosses(pool, settings.lossCeilings),
  ])
  const nowMs = clock.nowMs()
  const seen = new Map(upstreamsOf(processes).map((one) => [one.id, one]))
  const upstreams = configured.map((one) => upstreamOf(one, seen.get(one.id)))
  const stoppedRoutes = routes
    .filter(({ refusedSince, accounts }) => refusedSince !== null || accounts.some((one) => one.refusedSince !== null))
    .map(({ route }) => route)
  const asked = upstreams.flatMap(({ seen: one, mode, isOn }) => (one !== null && isOn ? [{ ...one, mode }] : []))
  const usageSeconds = usage.oldestSeconds
  return {
    at: new Date(nowMs),
    attention: attentionTo({ nowMs, processes, upstreams: asked, held, outbox, usageSeconds, stoppedRoutes }),
    processes,
    upstreams,
    held,
    outbox: outbox.map(({ kind, waiting, dead, oldest_seconds: oldestSeconds }) => ({
      kind,
      waiting,
      dead,
      oldestSeconds: Math.round(oldestSeconds),
    })),
  }
}

type Now = Awaited<ReturnType<typeof readStatus>>

function upstreamOf({ id, slot, mode, baseUrl, enabled }: UpstreamListed, seen: UpstreamView | undefined) {
  return { id, name: slot, mode, baseUrl, isOn: enabled, seen: seen ?? null }
}

function attentionLines({ at, attention }: Now): readonly string[] {
  const count = attention.length
  const title =
    count === 0 ? 'Nothing needs attention' : `${count} ${count === 1 ? 'thing needs' : 'things need'} attention`
  return [`${title}, ${at.toISOString()}`, ...attention.map(({ what, todo }) => `  ! ${what} → ${todo}`)]
}

function processLines({ at, processes }: Now): readonly string[] {
  if (processes.length === 0) return ['No process runs: farebox serve']
  const heading = ['Process', 'version', 'roles', ' up', ' memory', ' busy', ' calls', ' change log']
  const unread = processes.filter(({ report }) => report === null)
  return [
    ...inColumns(
      heading,
      processes.flatMap((one) => (one.report === null ? [] : [processCells(one, one.report, at)])),
    ),
    ...unread.map((one) => `${processName(one)}  another release: it writes no report that this one can read`),
  ]
}

const MIB = 1_048_576

function processCells(one: ProcessView, report: ProcessReport, at: Date): readonly string[] {
  const { isAlive, seenAt } = one
  const { version, roles, upSeconds, memory, eventLoop, openCalls, changesLagMs } = report
  const up = isAlive ? ageText(upSeconds) : `GONE ${ageText((at.getTime() - seenAt.getTime()) / 1_000)} ago`
  const lag = changesLagMs === null ? 'never read' : `${changesLagMs} ms`
  return [
    ...[processName(one), version, roles.join(','), up],
    ...[`${Math.round(memory.rssBytes / MIB)} MiB`, percent(eventLoop, 1), String(openCalls), lag],
  ]
}

function upstreamLines({ upstreams, processes }: Now): readonly string[] {
  if (upstreams.length === 0) return ['There are no upstreams: farebox upstreams add']
  const leftOut = processes.reduce((sum, { report }) => sum + (report?.upstreamsLeftOut ?? 0), 0)
  const heading = ['Upstream', 'mode', 'state', ' asked', ' failed', ' p50', ' p95', 'address']
  const quiet = upstreams.filter(
    ({ isOn, seen }) => isOn && (seen === null || (seen.state === 'up' && seen.asked === 0)),
  )
  const shown = upstreams.filter((one) => !quiet.includes(one))
  const rows = shown.map(({ name, mode, baseUrl, isOn, seen }) => [
    ...[name, mode, stateText(isOn, seen)],
    ...(seen === null ? ['', '', '', ''] : figureCells(seen)),
    baseUrl,
  ])
  return [
    `Upstreams, as all processes saw them in the last ${FIGURES_MINUTES} minutes; times are those of the slowest process`,
    ...(rows.length === 0 ? [] : inColumns(heading, rows)),
    ...(quiet.length === 0
      ? []
      : [`Not asked: ${quiet.map(({ name, mode }) => (mode === 'live' ? name : `${name} (test)`)).join(', ')}`]),
    ...(leftOut === 0
      ? []
      : [`${leftOut} figures of upstreams that answer did not fit into the reports of processes.`]),
  ]
}

function stateText(isOn: boolean, seen: UpstreamView | null): string {
  if (!isOn || seen === null) return 'off'
  const since = seen.since === null ? '' : ` since ${seen.since.toISOString().slice(0, 19)}Z`
  return `${{ up: 'up', partly: 'DOWN for some', down: 'DOWN' }[seen.state]}${since}`
}

function figureCells({ asked, failed, p50Ms, p95Ms }: UpstreamView): readonly string[] {
  const ms = (time: number | null) => (time === null ? '' : `${time.toLocaleString('en-US')} ms`)
  const share = failed === 0 ? '0' : `${failed.toLocaleString('en-US')} (${percent(failed, asked)})`
  return [asked.toLocaleString('en-US'), share, ms(p50Ms), ms(p95Ms)]
}

function moneyLines({ held, outbox }: Now): readonly string[] {
  const waiting = outbox.reduce((sum, one) => sum + one.waiting, 0)
  const dead = outbox.reduce((sum, one) => sum + one.dead, 0)
  const oldest = Math.max(0, ...outbox.filter((one) => one.waiting > 0).map((one) => one.oldestSeconds))
  const kinds = (['live', 'test'] as const).map((mode) => {
    const { calls, held: amount, unsettledCalls, unsettled } = held[mode]
    const lost =
      unsettledCalls === 0 ? 'none unsettled' : `${unsettledCalls} unsettled with ${formatUsd(unsettled)} USD`
    return `Held, ${mode}: ${formatUsd(amount)} USD by ${calls} calls and tasks, ${lost}`
  })
  return [
    ...kinds,
    `Outbox: ${waiting} waiting${waiting === 0 ? '' : `, the oldest for ${ageText(oldest)}`}, ${dead} dead letters`,
  ]
}

export const statusActions = [status]
