import { type Benchmark, type Metric, median, metric } from '../bench.ts'
import type { LoadReport } from '../load/load.ts'
import { STREAMED_CHAT, type Stage, startStage, type Target } from '../load/stage.ts'
import { estimated } from '../paired.ts'

/** So many streams at once, each with an event every few milliseconds: the same load for everybody, well below what fills a core. */
const STREAMS = 40
const EVENTS = { count: 200, everyMs: 8 }
/** The events, and the stop reason, the usage and the end behind them. */
const CHUNKS = EVENTS.count + 3
const FULL = { rounds: 9, measureMs: 5_000, warmUpMs: 12_000 }
const REDUCED = { rounds: 1, measureMs: 2_000, warmUpMs: 500 }

type Round = Readonly<Record<Target | 'chunks', number>>

/** What a chunk of a stream costs: events of 64 bytes, each written by itself upstream, metered and settled by ours. */
export const run: Benchmark = async (progress, { reduced, rounds: wanted }) => {
  const { rounds, measureMs, warmUpMs } = { ...(reduced ? REDUCED : FULL), ...(wanted && { rounds: wanted }) }
  const stage = await startStage({ callers: 1_000, withPeer: true, events: EVENTS })
  try {
    for (const target of ['ours', 'bare', 'peer'] as const) await perChunk(stage, target, warmUpMs)
    const measured: Round[] = []
    for (let at = 1; at <= rounds; at += 1) {
      const bare = await perChunk(stage, 'bare', measureMs)
      const ours = await perChunk(stage, 'ours', measureMs)
      const peer = await perChunk(stage, 'peer', measureMs)
      measured.push({ ours: ours.us, bare: bare.us, peer: peer.us, chunks: ours.perSecond })
      progress(
        `round ${at} of ${rounds}: ours ${ours.us.toFixed(1)}, bare ${bare.us.toFixed(1)}, peer ${peer.us.toFixed(1)} µs a chunk`,
      )
    }
    return metricsOf(measured)
  } finally {
    await stage.stop()
  }
}

/** Counted by the bytes that came in the window, because streams begin and end together. */
async function perChunk(stage: Stage, target: Target, measureMs: number) {
  const report = await stage.send(target, {
    connections: STREAMS,
    body: STREAMED_CHAT,
    warmUpMs: 1_000,
    measureMs: Math.max(measureMs, 2 * EVENTS.count * EVENTS.everyMs),
  })
  const chunks = chunksOf(report)
  return { us: (report.cpuUs.server ?? Number.NaN) / chunks, perSecond: (chunks * 1_000) / report.measuredMs }
}

function chunksOf({ answered, refused, broken, statuses, bytes, bytesOfOne }: LoadReport): number {
  if (answered > 0 && refused === 0 && broken === 0) return (bytes / bytesOfOne) * CHUNKS
  throw new Error(`the streams were not answered: ${JSON.stringify({ answered, statuses, broken })}`)
}

function metricsOf(rounds: readonly Round[]): Metric[] {
  const middle = (name: keyof Round) => median(rounds.map((round) => round[name]))
  const ratios = (of: Target, to: Target) => rounds.map((round) => round[of] / round[to])
  const besideBare = { baseline: middle('bare'), goal: '<= 1.15' }
  const besidePeer = { baseline: middle('peer'), goal: '<= 0.5' }
  return [
    ...estimated('cpu_per_chunk_ratio_bare', ratios('ours', 'bare'), 'x', besideBare),
    ...estimated('cpu_per_chunk_ratio_portkey', ratios('ours', 'peer'), 'x', besidePeer),
    metric('chunk_us', middle('ours'), 'us'),
    metric('chunk_bare_us', middle('bare'), 'us'),
    metric('chunk_portkey_us', middle('peer'), 'us'),
    metric('chunks_per_second', middle('chunks'), 'chunks/s'),
  ]
}
