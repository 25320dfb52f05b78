import { isObject, type JsonObject } from '../json.ts'

/** What a create call asks for. */
export type Job = {
  readonly model: string
  /** Absent where a picture says it all. */
  readonly prompt: string | undefined
  readonly seconds: number
  /** Lines of the picture: the resolution by which the vendor charges. */
  readonly sr: number
  readonly size: string
  readonly count: number
}

const MODEL_LIMIT = 256
const PROMPT_LIMIT = 8192
const DEFAULT_SECONDS = 5
const SECONDS_LIMIT = 3600
const DEFAULT_SR = 720
const COUNT_LIMIT = 16
const TIERS = [480, 720, 1080, 1440, 2160] as const

export function jobIn(body: unknown): Job | { readonly wrong: string } {
  if (!isObject(body)) return { wrong: 'The request body is not a JSON object.' }
  const { model, input, parameters = {} } = body
  if (typeof model !== 'string' || model === '' || model.length > MODEL_LIMIT) return { wrong: 'model is required.' }
  if (!isObject(input) || Object.keys(input).length === 0) return { wrong: 'input is required.' }
  const { prompt } = input
  if (prompt === '' || (prompt !== undefined && typeof prompt !== 'string'))
    return { wrong: 'input.prompt must be a text.' }
  if (!isObject(parameters)) return { wrong: 'parameters must be an object.' }
  const picture = pictureIn(parameters)
  if ('wrong' in picture) return picture
  const { duration = DEFAULT_SECONDS, n = 1 } = parameters
  if (!isNumber(duration) || duration <= 0 || duration > SECONDS_LIMIT)
    return { wrong: 'parameters.duration is not valid.' }
  if (!isNumber(n) || !Number.isInteger(n) || n < 1 || n > COUNT_LIMIT) return { wrong: 'parameters.n is not valid.' }
  return { model, prompt: prompt === undefined ? undefined : kept(prompt), seconds: duration, count: n, ...picture }
}

/** As `resolution`, `720P`, or as `size`, `1280*720`. */
function pictureIn({ resolution, size }: JsonObject): { sr: number; size: string } | { wrong: string } {
  const lines = /^(\d{3,4})P$/i.exec(String(resolution ?? `${DEFAULT_SR}P`))?.[1]
  if (lines === undefined) return { wrong: 'parameters.resolution is not valid.' }
  if (size === undefined) return { sr: Number(lines), size: wideSize(Number(lines)) }
  const [, width, height] = /^(\d{2,5})[*x](\d{2,5})$/.exec(String(size)) ?? []
  if (width === undefined || height === undefined) return { wrong: 'parameters.size is not valid.' }
  const sr = resolution === undefined ? tierOf(Number(width) * Number(height)) : Number(lines)
  return { sr, size: `${width}*${height}` }
}

/** A square or upright picture belongs to the tier whose wide picture has about as many points. */
function tierOf(points: number): number {
  const lines = Math.sqrt((points * 9) / 16)
  return TIERS.reduce((nearest, tier) => (Math.abs(tier - lines) < Math.abs(nearest - lines) ? tier : nearest))
}

function wideSize(lines: number): string {
  return `${lines === 480 ? 832 : Math.round((lines * 16) / 9)}*${lines}`
}

/** As much of a prompt as is worth keeping, in a copy, so that the rest can be let go. */
function kept(prompt: string): string {
  return prompt.length <= PROMPT_LIMIT ? prompt : Buffer.from(prompt.slice(0, PROMPT_LIMIT)).toString()
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number'
}
