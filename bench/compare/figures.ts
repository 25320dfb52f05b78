import { type Metric, median, metric } from '../bench.ts'
import type { LoadReport } from '../load/load.ts'
import { perRequest } from '../load/window.ts'
import { estimated, ratiosOf } from '../paired.ts'
import type { Side } from './sides.ts'
import type { Counts } from './undisturbed.ts'

/** What the windows of a comparison say: ratios within a round, and their medians with intervals. */

/** Windows one after the other: the same load for both versions, and the bare proxy at the rate of the new one. */
export type Reports = Readonly<Record<Side, LoadReport>>

/** By the names of its steps. */
export type Round = ReadonlyMap<string, Reports>

/** Calls a second at which latency is compared: with PostgreSQL sharing its core, a rung of the ladder, and alone on it. */
export const LOW_RATE = 500
const SHARED = `r${LOW_RATE}`
export const APART = 'apart'

/** Of a rate that was asked for, what has to be reached: below that, load is not equal any more. */
const REACHED_LEAST = 0.95

export function metricsOf(rounds: readonly Round[], { windows, repeated, disturbed }: Counts): Metric[] {
  const names = [...(rounds[0]?.keys() ?? [])].filter((name) => name !== APART)
  const steps = names.map((name) => ({ name, reports: comparable(name, reportsOf(rounds, name)) }))
  const short = steps.reduce((sum, { reports }) => sum + rounds.length - reports.length, 0)
  return [
    ...steps.flatMap(({ name, reports }) => ratioMetrics(name, reports)),
    ...latencyMetrics(rounds),
    ...steps.flatMap(({ name, reports }) => plainMetrics(name, reports)),
    metric('windows_repeated', repeated, 'windows', { baseline: windows }),
    metric('windows_disturbed', disturbed, 'windows', { baseline: windows }),
    metric('steps_below_rate', short, 'steps', { baseline: steps.length * rounds.length }),
  ]
}

function reportsOf(rounds: readonly Round[], name: string): Reports[] {
  return rounds.flatMap((round) => round.get(name) ?? [])
}

/** Where one version did not keep up with a fixed rate, the two did not bear the same load. */
function comparable(name: string, reports: readonly Reports[]): readonly Reports[] {
  const rate = Number(/^r(\d+)$/.exec(name)?.[1] ?? 0)
  const reached = ({ perSecond }: LoadReport) => perSecond >= REACHED_LEAST * rate
  return reports.filter((one) => reached(one.new) && reached(one.old))
}

/** CPU-µs for a call. */
function costs(reports: readonly Reports[], side: Side, of: 'server' | 'postgres'): number[] {
  return reports.map((one) => perRequest(one[side], of))
}

function ratioMetrics(name: string, reports: readonly Reports[]): Metric[] {
  if (reports.length === 0) return []
  const newOverOld = (of: 'server' | 'postgres') => ({
    ratios: ratiosOf(costs(reports, 'new', of), costs(reports, 'old', of)),
    beside: { baseline: median(costs(reports, 'old', of)) },
  })
  const [postgres, gateway] = [newOverOld('postgres'), newOverOld('server')]
  const bare = costs(reports, 'bare', 'server')
  // As the benchmark of a metered call names it.
  const suffix = name === 'c50' ? '' : `_${name}`
  return [
    ...estimated(`pg_ratio_${name}`, postgres.ratios, 'x', postgres.beside),
    ...estimated(`gateway_ratio_${name}`, gateway.ratios, 'x', gateway.beside),
    ...estimated(`cpu_ratio_bare${suffix}`, ratiosOf(costs(reports, 'new', 'server'), bare), 'x', {
      baseline: median(bare),
    }),
  ]
}

/** What each version adds to the median of the bare proxy, by layout; beside it what it adds in the other layout. */
function latencyMetrics(rounds: readonly Round[]): Metric[] {
  const added = (side: 'new' | 'old', name: string) =>
    reportsOf(rounds, name).map((one) => (one[side].p50Ms - one.bare.p50Ms) * 1_000)
  return (['new', 'old'] as const).flatMap((side) => {
    const suffix = side === 'new' ? '' : '_old'
    const [apart, shared] = [added(side, APART), added(side, SHARED)]
    return [
      ...estimated(`added_p50_us${suffix}`, apart, 'us', { baseline: median(shared) }),
      ...estimated(`added_p50_us_shared${suffix}`, shared, 'us', { baseline: median(apart) }),
    ]
  })
}

/** Of this version, beside the other. */
function plainMetrics(name: string, reports: readonly Reports[]): Metric[] {
  if (reports.length === 0) return []
  const beside = (what: string, unit: string, of: (report: LoadReport) => number) => {
    const middle = (side: Side) => median(reports.map((one) => of(one[side])))
    return metric(`${what}_${name}`, middle('new'), unit, { baseline: middle('old') })
  }
  return [
    beside('gateway_us', 'us', (report) => perRequest(report, 'server')),
    beside('postgres_us', 'us', (report) => perRequest(report, 'postgres')),
    beside('requests', 'req/s', ({ perSecond }) => perSecond),
    beside('p50_ms', 'ms', ({ p50Ms }) => p50Ms),
  ]
}
