import { type Benchmark, type Metric, median, metric } from '../bench.ts'
import type { LoadReport } from '../load/load.ts'
import { type Stage, startStage, streamedChat, streamedResponse, type Wanted } from '../load/stage.ts'
import { estimated } from '../paired.ts'

/** So many streams at once, each with an event every few milliseconds: the same load for everybody, well below what fills a core. */
const STREAMS = 40
const EVERY_MS = 8
/** A stream is begun and settled once, which its events share: so there are answers of two lengths. */
const LENGTHS = { usual: 200, long: 1_000 } as const
/** In a chat the stop reason, the usage and the end; in Responses the three before the first word and the four behind the last. */
const CHUNKS_AROUND = { chat: 3, responses: 7 } as const
const FULL = { rounds: 9, measureMs: 5_000, warmUpMs: 12_000 }
const REDUCED = { rounds: 1, measureMs: 2_000, warmUpMs: 500 }

type Length = keyof typeof LENGTHS
/** Ours is measured by both protocols. */
type Whose = 'ours' | 'responses' | 'bare' | 'portkey'
/** µs of CPU for a chunk. */
type Costs = Readonly<Record<Whose, number>>
type Round = Readonly<Partial<Record<Length, Costs>>>

/** What a chunk of a stream costs: events of 64 bytes, each written by itself upstream, metered and settled by ours. */
export const run: Benchmark = async (progress, { reduced, rounds: wanted }) => {
  const { rounds, measureMs, warmUpMs } = { ...(reduced ? REDUCED : FULL), ...(wanted && { rounds: wanted }) }
  // What is reduced only shows that it works.
  const lengths: readonly Length[] = reduced ? ['usual'] : ['usual', 'long']
  const stage = await startStage({ callers: 1_000, peers: ['portkey'], everyMs: EVERY_MS })
  try {
    for (const whose of ['ours', 'responses', 'bare', 'portkey'] as const)
      await perChunk(stage, whose, 'usual', warmUpMs)
    const measured: Round[] = []
    for (let at = 1; at <= rounds; at += 1) {
      const round: Partial<Record<Length, Costs>> = {}
      for (const length of lengths) {
        const bare = await perChunk(stage, 'bare', length, measureMs)
        const ours = await perChunk(stage, 'ours', length, measureMs)
        const responses = await perChunk(stage, 'responses', length, measureMs)
        const portkey = await perChunk(stage, 'portkey', length, measureMs)
        round[length] = { ours, responses, bare, portkey }
        const told = Object.entries(round[length]).map(([whose, cost]) => `${whose} ${cost.toFixed(1)}`)
        const costs = `${told.join(', ')} µs a chunk`
        progress(`round ${at} of ${rounds}, ${LENGTHS[length]} events: ${costs}`)
      }
      measured.push(round)
    }
    const goals = { bare: '<= 1.15', portkey: '<= 0.5', ours: '<= 1.1' }
    return [...metricsOf(costsOf(measured, 'usual'), '', goals), ...metricsOf(costsOf(measured, 'long'), '_long', {})]
  } finally {
    await stage.stop()
  }
}

/** Counted by the bytes that came in the window, because streams begin and end together. */
async function perChunk(stage: Stage, whose: Whose, length: Length, measureMs: number): Promise<number> {
  const events = LENGTHS[length]
  const isResponses = whose === 'responses'
  const load: Wanted = {
    connections: STREAMS,
    warmUpMs: 1_000,
    measureMs: Math.max(measureMs, 2 * events * EVERY_MS),
    ...(isResponses ? { path: '/v1/responses', body: streamedResponse(events) } : { body: streamedChat(events) }),
  }
  const report = await stage.send(isResponses ? 'ours' : whose, load)
  return (
    (report.cpuUs.server ?? Number.NaN) / chunksOf(report, events + CHUNKS_AROUND[isResponses ? 'responses' : 'chat'])
  )
}

function chunksOf({ answered, refused, broken, statuses, bytes, bytesOfOne }: LoadReport, chunks: number): number {
  if (answered > 0 && refused === 0 && broken === 0) return (bytes / bytesOfOne) * chunks
  throw new Error(`the streams were not answered: ${JSON.stringify({ answered, statuses, broken })}`)
}

function costsOf(rounds: readonly Round[], length: Length): readonly Costs[] {
  return rounds.map((round) => round[length]).filter((costs) => costs !== undefined)
}

/** The goals are of answers of the usual length. */
function metricsOf(costs: readonly Costs[], suffix: string, goals: Partial<Record<Whose, string>>): Metric[] {
  if (costs.length === 0) return []
  const middle = (whose: Whose) => median(costs.map((one) => one[whose]))
  const beside = (whose: Exclude<Whose, 'responses'>) => ({
    baseline: middle(whose),
    ...(goals[whose] !== undefined && { goal: goals[whose] }),
  })
  const ratios = (of: Whose, to: Exclude<Whose, 'responses'>) => costs.map((one) => one[of] / one[to])
  return [
    ...estimated(`cpu_per_chunk_ratio_bare${suffix}`, ratios('ours', 'bare'), 'x', beside('bare')),
    ...estimated(`cpu_per_chunk_ratio_portkey${suffix}`, ratios('ours', 'portkey'), 'x', beside('portkey')),
    ...estimated(`cpu_per_chunk_ratio_responses_to_chat${suffix}`, ratios('responses', 'ours'), 'x', beside('ours')),
    metric(`chunk_us${suffix}`, middle('ours'), 'us'),
    metric(`chunk_responses_us${suffix}`, middle('responses'), 'us'),
    metric(`chunk_bare_us${suffix}`, middle('bare'), 'us'),
    metric(`chunk_portkey_us${suffix}`, middle('portkey'), 'us'),
  ]
}
