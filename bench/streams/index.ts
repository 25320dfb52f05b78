import { type Benchmark, type Metric, median, metric } from '../bench.ts'
import type { LoadReport } from '../load/load.ts'
import { STREAMED_CHAT, type Stage, startStage, type Target } from '../load/stage.ts'
import { estimated } from '../paired.ts'

/** So many streams at once, each with an event every few milliseconds: the same load for everybody, well below what fills a core. */
const STREAMS = 40
const EVERY_MS = 8
/** A stream is begun and settled once, and that is spread over its events: so there are answers of two lengths. */
const EVENTS = { usual: 200, long: 1_000 } as const
/** The stop reason, the usage and the end. */
const CHUNKS_BEHIND = 3
const FULL = { rounds: 9, measureMs: 5_000, warmUpMs: 12_000 }
const REDUCED = { rounds: 1, measureMs: 2_000, warmUpMs: 500 }

type Options = Parameters<Benchmark>[1]
type Round = Readonly<Record<Target | 'chunks', number>>

/** What a chunk of a stream costs: events of 64 bytes, each written by itself upstream, metered and settled by ours. */
export const run: Benchmark = async (progress, options) => {
  const usual = await measure(EVENTS.usual, progress, options)
  // What is reduced only shows that it works.
  const long = options.reduced ? [] : await measure(EVENTS.long, progress, options)
  return [...metricsOf(usual), ...metricsOfLong(long)]
}

async function measure(events: number, progress: (line: string) => void, options: Options): Promise<Round[]> {
  const { rounds, measureMs, warmUpMs } = options.reduced ? REDUCED : FULL
  const wanted = options.rounds ?? rounds
  const stage = await startStage({ callers: 1_000, withPeer: true, events: { count: events, everyMs: EVERY_MS } })
  try {
    for (const target of ['ours', 'bare', 'peer'] as const) await perChunk(stage, target, events, warmUpMs)
    const measured: Round[] = []
    for (let at = 1; at <= wanted; at += 1) {
      const bare = await perChunk(stage, 'bare', events, measureMs)
      const ours = await perChunk(stage, 'ours', events, measureMs)
      const peer = await perChunk(stage, 'peer', events, measureMs)
      measured.push({ ours: ours.us, bare: bare.us, peer: peer.us, chunks: ours.perSecond })
      progress(
        `${events} events, round ${at} of ${wanted}: ours ${ours.us.toFixed(1)}, bare ${bare.us.toFixed(1)}, peer ${peer.us.toFixed(1)} µs a chunk`,
      )
    }
    return measured
  } finally {
    await stage.stop()
  }
}

/** Counted by the bytes that came in the window, because streams begin and end together. */
async function perChunk(stage: Stage, target: Target, events: number, measureMs: number) {
  const report = await stage.send(target, {
    connections: STREAMS,
    body: STREAMED_CHAT,
    warmUpMs: 1_000,
    measureMs: Math.max(measureMs, 2 * events * EVERY_MS),
  })
  const chunks = chunksOf(report, events + CHUNKS_BEHIND)
  return { us: (report.cpuUs.server ?? Number.NaN) / chunks, perSecond: (chunks * 1_000) / report.measuredMs }
}

function chunksOf({ answered, refused, broken, statuses, bytes, bytesOfOne }: LoadReport, chunks: number): number {
  if (answered > 0 && refused === 0 && broken === 0) return (bytes / bytesOfOne) * chunks
  throw new Error(`the streams were not answered: ${JSON.stringify({ answered, statuses, broken })}`)
}

const middle = (rounds: readonly Round[], name: keyof Round) => median(rounds.map((round) => round[name]))
const ratios = (rounds: readonly Round[], of: Target, to: Target) => rounds.map((round) => round[of] / round[to])

function metricsOf(rounds: readonly Round[]): Metric[] {
  const besideBare = { baseline: middle(rounds, 'bare'), goal: '<= 1.15' }
  const besidePeer = { baseline: middle(rounds, 'peer'), goal: '<= 0.5' }
  return [
    ...estimated('cpu_per_chunk_ratio_bare', ratios(rounds, 'ours', 'bare'), 'x', besideBare),
    ...estimated('cpu_per_chunk_ratio_portkey', ratios(rounds, 'ours', 'peer'), 'x', besidePeer),
    metric('chunk_us', middle(rounds, 'ours'), 'us'),
    metric('chunk_bare_us', middle(rounds, 'bare'), 'us'),
    metric('chunk_portkey_us', middle(rounds, 'peer'), 'us'),
    metric('chunks_per_second', middle(rounds, 'chunks'), 'chunks/s'),
  ]
}

/** Without goals: those are of answers of the usual length. */
function metricsOfLong(rounds: readonly Round[]): Metric[] {
  if (rounds.length === 0) return []
  return [
    ...estimated('cpu_per_chunk_ratio_bare_long', ratios(rounds, 'ours', 'bare'), 'x'),
    ...estimated('cpu_per_chunk_ratio_portkey_long', ratios(rounds, 'ours', 'peer'), 'x'),
    metric('chunk_us_long', middle(rounds, 'ours'), 'us'),
    metric('chunk_bare_us_long', middle(rounds, 'bare'), 'us'),
    metric('chunk_portkey_us_long', middle(rounds, 'peer'), 'us'),
  ]
}
