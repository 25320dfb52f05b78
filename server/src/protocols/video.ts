import { formed, memberTable, priced, refused, type Table, typed } from '../catalogue/member-table.ts'
import { memberOf } from '../catalogue/price.ts'
import { refuseLookalikes, refuseMisplaced } from './lookalikes.ts'
import { isGiven, isMembers, type Members, modelOf, refusal } from './members.ts'
import type { ModelLimits } from './protocol.ts'
import { withModel } from './splice-json.ts'
import type { TaskReport, ToldTimes } from './task.ts'
import { counted, MODEL } from './typed-members.ts'

/** Asynchronous video: a task is created, asked for until it has ended, and can be canceled while it waits. */
export const VIDEO = {
  path: '/apis/v1/services/aigc/video-generation/video-synthesis',
  createTarget: '/services/aigc/video-generation/video-synthesis',
  taskTarget: (name: string) => `/tasks/${encodeURIComponent(name)}`,
  cancelTarget: (name: string) => `/tasks/${encodeURIComponent(name)}/cancel`,
  credentialHeader: 'authorization',
} as const

/** What a request for a video asks for. */
export type VideoAsk = {
  readonly prompt: string
  /** How long it may get at the most: as asked for, or what the model makes at the most. */
  readonly secondsMost: number
  /** How long it will be as a rule: as asked for, or what the model makes where nobody says. */
  readonly secondsUsual: number
  readonly videos: number
  /** `720P`, where the request says it; else the size in pixels, where it says that. */
  readonly resolution: string | undefined
  readonly pixels: number | undefined
  readonly bodyFor: (upstreamModel: string) => Buffer
}

const VIDEOS_MOST = 4
const PROMPT_LENGTH = 20_000
const RESOLUTION = /^\d{3,4}[Pp]$/
const SIZE = /^([1-9]\d{1,4})[*x]([1-9]\d{1,4})$/

const SIZED = 'a second has a price by its resolution'
const parameters = memberTable('parameters', {
  duration: typed({ type: 'integer', minimum: 1 }, priced('as many seconds are held')),
  n: counted('videos', VIDEOS_MOST),
  resolution: typed({ type: 'string', pattern: RESOLUTION.source }, priced(SIZED)),
  size: typed({ type: 'string', pattern: SIZE.source }, priced(SIZED)),
})
const input = memberTable(
  'input',
  { prompt: typed({ type: 'string', minLength: 1, maxLength: PROMPT_LENGTH }, priced('with the seconds')) },
  { required: ['prompt'] },
)
const READ_BODY = memberTable(
  'videos',
  {
    model: MODEL,
    input: formed(
      'object',
      priced('with the seconds', () => input),
    ),
    parameters: formed(
      'object',
      priced('by its members', () => parameters),
    ),
  },
  { required: ['model', 'input'] },
)

/** What we read. Everything else passes byte for byte: the definition does not show it. */
const READ = {
  body: Object.keys(READ_BODY.members),
  input: Object.keys(input.members),
  parameters: Object.keys(parameters.members),
}

/** What we read and what we refuse where it does not belong, for those who write requests. */
export const VIDEO_REQUEST: Table = memberTable(
  READ_BODY.title,
  {
    ...READ_BODY.members,
    ...Object.fromEntries(READ.parameters.map((name) => [name, refused(`it belongs into "parameters.${name}".`)])),
  },
  { required: READ_BODY.required },
)

type VideoLimits = Pick<ModelLimits, 'outputCap' | 'outputMost'>

export function askOfVideo(body: unknown, rawBody: Buffer, limits: VideoLimits): VideoAsk {
  if (!isMembers(body)) throw refusal('The body must be a JSON object.')
  const model = modelOf(body)
  const given = { input: objectOf(body, 'input'), parameters: objectOf(body, 'parameters') }
  refuseLookalikes(body, READ.body)
  refuseLookalikes(given.input, READ.input, 'input.')
  refuseLookalikes(given.parameters, READ.parameters, 'parameters.')
  refuseMisplaced(body, READ.parameters, '', 'parameters.')
  refuseMisplaced(given.input, READ.parameters, 'input.', 'parameters.')
  refuseMisplaced(given.input, ['model'], 'input.', '')
  refuseMisplaced(given.parameters, ['model'], 'parameters.', '')
  const { outputCap, outputMost } = limits
  const seconds = wholeOf(given.parameters, 'duration', outputMost)
  return {
    prompt: promptOf(given.input),
    secondsMost: seconds ?? outputMost,
    secondsUsual: seconds ?? Math.min(outputCap, outputMost),
    videos: wholeOf(given.parameters, 'n', VIDEOS_MOST) ?? 1,
    ...sizeOf(given.parameters),
    bodyFor: (upstreamModel) => withModel(rawBody, model, upstreamModel),
  }
}

function promptOf({ prompt }: Members): string {
  if (typeof prompt === 'string' && prompt !== '' && prompt.length <= PROMPT_LENGTH) return prompt
  throw refusal(`"input.prompt" must be a text of 1 to ${PROMPT_LENGTH} characters.`)
}

function objectOf(members: Members, name: string): Members {
  const value = members[name]
  if (!isGiven(value)) return {}
  if (!isMembers(value)) throw refusal(`"${name}" must be an object.`)
  return value
}

function wholeOf(parameters: Members, name: string, most: number): number | undefined {
  const value = parameters[name]
  if (!isGiven(value)) return undefined
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= most) return value
  throw refusal(`"parameters.${name}" must be a whole number from 1 to ${most}.`)
}

function sizeOf({ resolution, size }: Members): Pick<VideoAsk, 'resolution' | 'pixels'> {
  if (isGiven(resolution) && isGiven(size))
    throw refusal('Give "parameters.resolution" or "parameters.size", not both: they may have different prices.')
  if (isGiven(resolution)) {
    if (typeof resolution === 'string' && RESOLUTION.test(resolution))
      return { resolution: resolution.toUpperCase(), pixels: undefined }
    throw refusal('"parameters.resolution" must be a resolution such as "720P".')
  }
  if (!isGiven(size)) return { resolution: undefined, pixels: undefined }
  const [, width, height] = (typeof size === 'string' && SIZE.exec(size)) || []
  if (width === undefined || height === undefined)
    throw refusal('"parameters.size" must be a size in pixels such as "1280*720".')
  return { resolution: undefined, pixels: Number(width) * Number(height) }
}

/** What an upstream says of a video's task. */
export type VideoReport = TaskReport<
  { readonly videoUrl: string; readonly usage: VideoUsage },
  { readonly usage: VideoUsage }
>

/** As far as it is said. */
export type VideoUsage = {
  readonly seconds: number | undefined
  readonly videos: number
  /** Lines: 720. */
  readonly resolution: number | undefined
}

const NAME = /^[A-Za-z0-9._:-]{1,200}$/
const NO_VIDEO = { code: 'InternalError', message: 'The upstream says that it made a video, and not where it is.' }
const TEXT_LENGTH = 2_000
const CODE_LENGTH = 200

/** The name of a task that was created and how it stands; undefined where the answer does not say. */
export function createdIn(json: unknown): { readonly name: string; readonly state: 'PENDING' | 'RUNNING' } | undefined {
  const name = memberOf(json, 'output', 'task_id')
  if (typeof name !== 'string' || !NAME.test(name)) return undefined
  return { name, state: memberOf(json, 'output', 'task_status') === 'RUNNING' ? 'RUNNING' : 'PENDING' }
}

/** Undefined where the answer is none about this task. */
export function reportIn(json: unknown, name: string): VideoReport | undefined {
  const output = memberOf(json, 'output')
  const told = memberOf(output, 'task_id')
  if (told !== undefined && told !== name) return undefined
  const state = memberOf(output, 'task_status')
  const times = timesIn(output)
  switch (state) {
    case 'PENDING':
    case 'RUNNING':
    case 'UNKNOWN':
      return { state, times }
    case 'SUSPENDED':
      return { state: 'PENDING', times }
    case 'SUCCEEDED': {
      const videoUrl = memberOf(output, 'video_url')
      // Its last word: a video that nobody can have was not made, and costs nothing.
      if (typeof videoUrl !== 'string' || videoUrl === '') return { state: 'FAILED', ...NO_VIDEO, times }
      return { state, videoUrl, usage: usageIn(json), times }
    }
    case 'FAILED':
      return {
        state,
        code: textOf(memberOf(output, 'code'), CODE_LENGTH, 'InternalError'),
        message: textOf(memberOf(output, 'message'), TEXT_LENGTH, 'The upstream says no more.'),
        times,
      }
    case 'CANCELED':
      return { state, usage: usageIn(json), times }
    default:
      return undefined
  }
}

function timesIn(output: unknown): ToldTimes {
  return {
    submittedMs: timeOf(memberOf(output, 'submit_time')),
    scheduledMs: timeOf(memberOf(output, 'scheduled_time')),
    endedMs: timeOf(memberOf(output, 'end_time')),
  }
}

const TIME = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,9})?)$/

function timeOf(value: unknown): number | undefined {
  const [, day, time] = (typeof value === 'string' && TIME.exec(value)) || []
  const ms = Date.parse(`${day}T${time}Z`)
  return Number.isNaN(ms) ? undefined : ms
}

function textOf(value: unknown, most: number, otherwise: string): string {
  // PostgreSQL keeps no NUL, and half of a pair is no text.
  return typeof value === 'string' && value !== ''
    ? value.replaceAll('\0', '').toWellFormed().slice(0, most)
    : otherwise
}

/** It comes as an object or as the JSON text of one, and the seconds under a name that has changed twice. */
function usageIn(json: unknown): VideoUsage {
  const usage = parsed(memberOf(json, 'usage'))
  const seconds = ['output_video_duration', 'video_duration', 'duration'].map((name) => numberIn(usage, name))
  return {
    seconds: seconds.find((one) => one !== undefined),
    videos: Math.trunc(numberIn(usage, 'video_count') ?? 1),
    resolution: Math.trunc(numberIn(usage, 'SR') ?? 0) || undefined,
  }
}

function parsed(usage: unknown): unknown {
  if (typeof usage !== 'string') return usage
  try {
    return JSON.parse(usage)
  } catch {
    return undefined
  }
}

const NUMBER_MOST = 1_000_000

/** A number, or the text of one. */
function numberIn(usage: unknown, name: string): number | undefined {
  const value = memberOf(usage, name)
  const number = typeof value === 'string' && /^\d{1,7}(\.\d{1,6})?P?$/.test(value) ? Number.parseFloat(value) : value
  return typeof number === 'number' && number >= 0 && number <= NUMBER_MOST ? number : undefined
}
