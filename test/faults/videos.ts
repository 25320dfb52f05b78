import { VIDEO_MODEL, VIDEO_PRICES, VIDEO_SECONDS_MOST } from '../../harness/seed.ts'
import type { Random } from '../../sandbox/src/random.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { askOfVideo } from '../../server/src/protocols/video.ts'
import { memberOf } from './speech.ts'

/** What is sold as a task, and whose upstream goes on when its creation has been answered. */
export const VIDEO_OPERATION = 'video_synthesis'
const BASE = '/apis/v1/services/aigc'
export const VIDEO_PATH = `${BASE}/video-generation/video-synthesis`
export const ASYNC = { 'x-farebox-async': 'enable' }
export const taskPath = (id: string) => `${BASE}/tasks/${id}`
export const cancelPath = (id: string) => `${BASE}/tasks/${id}/cancel`

type Resolution = keyof typeof VIDEO_PRICES
const RESOLUTIONS = ['480P', '720P', '1080P'] as const satisfies readonly Resolution[]

/** A video that is asked for. What is left out is for the upstream to choose, and is held for at its dearest. */
export type Video = {
  readonly words: string
  readonly duration?: number
  readonly resolution?: Resolution
  readonly n?: number
  /** Whether the upstream was told to make it and to lose its answer, or to leave us in doubt. */
  readonly isLost: boolean
}

export function bodyOf(mark: string, { words, isLost: _, ...parameters }: Video): string {
  return JSON.stringify({ model: VIDEO_MODEL, input: { prompt: `a fox in the snow ${mark} ${words}` }, parameters })
}

/** The body as it reaches the upstream, by which its journal knows it. */
export function upstreamBodyOf(body: string): Buffer {
  return askOfVideo(JSON.parse(body), Buffer.from(body), { outputCap: 5, outputMost: VIDEO_SECONDS_MOST }).bodyFor(
    VIDEO_MODEL,
  )
}

/** Most end well within some seconds; the rest in all the ways that there are, and some never. */
export function videoFor(random: Random, isToBeCanceled: boolean): Video {
  const create = creation(random)
  const words = [create.words, ...paceOf(random, isToBeCanceled), ...endOf(random), ...pollsOf(random)]
  return {
    words: words
      .filter((word) => word !== '')
      .map((word) => `sandbox:${word}`)
      .join(' '),
    isLost: create.isLost,
    ...(random.chance(0.9) && { duration: random.between(1, 6) }),
    ...(random.chance(0.85) && { resolution: random.pick(RESOLUTIONS) }),
    ...(random.chance(0.15) && { n: random.between(1, 3) }),
  }
}

const LOST = ['reset=before-headers', 'close-early', 'garbage', 'empty', 'truncate', 'status=502 sandbox:html'] as const

function creation(random: Random): { readonly words: string; readonly isLost: boolean } {
  const dice = random.fraction()
  if (dice < 0.05) return { words: random.pick(LOST), isLost: true }
  if (dice < 0.06) return { words: 'status=504 sandbox:done-anyway sandbox:html', isLost: true }
  if (dice < 0.09) return { words: random.pick(['status=500', 'status=400', 'status=429'] as const), isLost: false }
  return { words: dice < 0.5 ? `delay=${random.between(5, 900)}` : '', isLost: false }
}

function paceOf(random: Random, isToBeCanceled: boolean): readonly string[] {
  if (isToBeCanceled) {
    const fault = random.chance(0.2) ? `${random.pick(['cancel-fails', 'cancel-cuts'] as const)}=1` : ''
    return [`pending-ms=${random.between(3_000, 6_000)}`, fault]
  }
  const pending = random.chance(0.2) ? 'starts-running sandbox:pending-ms=0' : `pending-ms=${random.between(0, 1_500)}`
  return [pending, `running-ms=${random.between(50, 5_000)}`, random.chance(0.05) ? 'unknown-ms=1500' : '']
}

function endOf(random: Random): readonly string[] {
  const dice = random.fraction()
  if (dice < 0.02) return ['task-ends=never']
  if (dice < 0.03) return ['task-ends=unknown']
  if (dice < 0.17) return ['task-ends=failed']
  const canceled = random.chance(0.6) ? `canceled-seconds=${random.between(1, 4)}` : ''
  if (dice < 0.25) return ['task-ends=canceled', canceled]
  const form = random.pick(['new', 'new', 'new', 'old', 'ratio', 'string', 'none', 'broken'] as const)
  const others = random.chance(0.2) ? `video-seconds=${random.pick(['0.5', '2.25', '3', '9', '20'] as const)}` : ''
  const sr = random.chance(0.1) ? `usage-sr=${random.pick([480, 1080, 1440] as const)}` : ''
  return [canceled, `usage-form=${form}`, others, sr]
}

const POLL_FAULTS = ['poll-429', 'poll-fails', 'poll-garbage', 'poll-hangs', 'poll-cuts'] as const

function pollsOf(random: Random): readonly string[] {
  return random.chance(0.15) ? [`${random.pick(POLL_FAULTS)}=1`] : []
}

const priceOf = (resolution: Resolution) => usd(VIDEO_PRICES[resolution])
const DEAREST: Resolution = '1080P'

/** What is held for a video: the most that it may cost. */
export function heldFor({ duration = VIDEO_SECONDS_MOST, n = 1, resolution = DEAREST }: Video): bigint {
  return BigInt(duration * n) * priceOf(resolution)
}

/** What is due for a video by what its upstream reports of it; undefined where that does not say how long it is. */
export function dueFor({ resolution: asked = DEAREST }: Video, reported: unknown): bigint | undefined {
  const usage = typeof reported === 'string' ? parsed(reported) : reported
  const seconds = memberOf(usage, 'output_video_duration') ?? memberOf(usage, 'video_duration')
  if (typeof seconds !== 'number') return undefined
  const made = `${Number(memberOf(usage, 'SR'))}P`
  const resolution = RESOLUTIONS.find((one) => one === made) ?? asked
  const count = Number(memberOf(usage, 'video_count') ?? 1)
  return (BigInt(Math.round(seconds * count * 1_000)) * priceOf(resolution)) / 1_000n
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
