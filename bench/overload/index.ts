import { readFileSync } from 'node:fs'
import { type Benchmark, type Metric, median, metric } from '../bench.ts'
import type { LoadReport } from '../load/load.ts'
import { type Stage, startStage } from '../load/stage.ts'
import { estimated } from '../paired.ts'

const PEAK_CONNECTIONS = 200
const TIMES = 5
/** Callers who come whether or not those before were answered, until so many wait: few enough to be answered all, and too many. */
const CALLERS_AT_ONCE = { few: 2_000, many: 4_000 }
const SHARE_AFTERWARDS = 0.3
const RECOVERED = 2
const FULL = { rounds: 5, measureMs: 10_000, warmUpMs: 15_000 }
const REDUCED = { rounds: 1, measureMs: 2_000, warmUpMs: 1_000 }
const RSS_LIMIT_MB = 768

type Figures = Readonly<
  Record<
    | 'peak'
    | 'goodput'
    | 'goodputOfFew'
    | 'servedP50Ms'
    | 'servedP99Ms'
    | 'refused'
    | 'refusedP50Ms'
    | 'refusedP99Ms'
    | 'rssMb'
    | 'recoverySeconds'
    | 'generatorShare',
    number
  >
>
type Round = { readonly figures: Figures; readonly statuses: LoadReport['statuses'] }

/** What becomes of a gateway that is asked for five times what it can do, and how soon it is itself again. */
export const run: Benchmark = async (progress, { reduced, rounds: wanted }) => {
  const { rounds, measureMs, warmUpMs } = { ...(reduced ? REDUCED : FULL), ...(wanted && { rounds: wanted }) }
  const stage = await startStage({ callers: 1_000 })
  try {
    await stage.send('ours', { connections: PEAK_CONNECTIONS, warmUpMs: 100, measureMs: warmUpMs })
    const measured: Figures[] = []
    for (let at = 1; at <= rounds; at += 1) {
      const round = await measure(stage, measureMs)
      measured.push(round.figures)
      progress(`round ${at} of ${rounds}: ${summary(round)}`)
    }
    return metricsOf(measured)
  } finally {
    await stage.stop()
  }
}

async function measure(stage: Stage, measureMs: number): Promise<Round> {
  const window = { warmUpMs: 500, measureMs }
  const peak = await stage.send('ours', { connections: PEAK_CONNECTIONS, ...window })
  const quiet = { connections: 50, rate: SHARE_AFTERWARDS * peak.perSecond }
  const before = await stage.send('ours', { ...quiet, ...window })
  const rss = watchMemory(stage.gateways[0]?.pid ?? 0)
  const storm = { rate: TIMES * peak.perSecond, warmUpMs: 1_000, measureMs }
  const few = await stage.send('ours', { connections: CALLERS_AT_ONCE.few, ...storm })
  const overload = await stage.send('ours', { connections: CALLERS_AT_ONCE.many, ...storm })
  const rssMb = rss.most()
  const after = await stage.send('ours', { ...quiet, warmUpMs: 0, measureMs: Math.max(measureMs, 8_000) })
  const figures = {
    peak: peak.perSecond,
    goodput: overload.perSecond,
    goodputOfFew: few.perSecond,
    servedP50Ms: overload.servedP50Ms,
    servedP99Ms: overload.servedP99Ms,
    refused: overload.refused,
    refusedP50Ms: overload.refusedP50Ms,
    refusedP99Ms: overload.refusedP99Ms,
    rssMb,
    recoverySeconds: recoveryOf(after, before.p50Ms),
    generatorShare: overload.generatorShare,
  }
  return { figures, statuses: overload.statuses }
}

/** The first second in which the median is what it was, or nearly. */
function recoveryOf({ seconds }: LoadReport, beforeMs: number): number {
  const first = seconds.findIndex(({ p50Ms, answered }) => answered > 0 && p50Ms <= RECOVERED * beforeMs)
  return first === -1 ? seconds.length + 1 : first + 1
}

function watchMemory(pid: number): { readonly most: () => number } {
  let most = 0
  const look = setInterval(() => {
    most = Math.max(most, Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0))
  }, 100)
  return {
    most() {
      clearInterval(look)
      return most / 1_024
    },
  }
}

function metricsOf(rounds: readonly Figures[]): Metric[] {
  const all = (name: keyof Figures) => rounds.map((round) => round[name])
  const ratios = rounds.map(({ goodput, peak }) => goodput / peak)
  return [
    ...estimated('goodput_ratio_peak', ratios, 'x', { baseline: median(all('peak')), goal: '>= 0.85' }),
    metric('goodput_ratio_peak_least', Math.min(...ratios), 'x', { goal: '>= 0.85' }),
    ...estimated(
      'goodput_ratio_peak_few',
      rounds.map(({ goodputOfFew, peak }) => goodputOfFew / peak),
      'x',
    ),
    metric('goodput', median(all('goodput')), 'req/s'),
    metric('served_p50_ms', median(all('servedP50Ms')), 'ms'),
    metric('served_p99_ms', Math.max(...all('servedP99Ms')), 'ms'),
    metric('refused', median(all('refused')), 'requests'),
    metric('refused_p50_ms', median(all('refusedP50Ms')), 'ms'),
    metric('refused_p99_ms', Math.max(...all('refusedP99Ms')), 'ms', { goal: '<= 100' }),
    metric('rss_mb', Math.max(...all('rssMb')), 'MB', { goal: `<= ${RSS_LIMIT_MB}` }),
    metric('recovery_s', Math.max(...all('recoverySeconds')), 's', { goal: '<= 2' }),
  ]
}

function summary({ figures, statuses }: Round): string {
  const told = Object.entries(figures).map(([name, value]) => `${name} ${value.toFixed(1)}`)
  return `${told.join(', ')}, ${JSON.stringify(statuses)}`
}
