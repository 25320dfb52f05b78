import { countIn, memberOf } from '../catalogue/price.ts'
import { isMembers } from './members.ts'
import type { Reported } from './protocol.ts'
import type { RouteProfile } from './route-profile.ts'
import { countedBeside, partsOf, reportedOf } from './usage.ts'

/** The counts of both of OpenAI's protocols for conversations: what was read from a cache and written to one is part of the prompt. */
export type Counts = {
  readonly prompt: number | undefined
  readonly completion: number | undefined
  readonly cached: number | undefined
  readonly written: number | undefined
  /** Of the completion, or beside it, as the route's profile says. */
  readonly reasoning: number | undefined
  readonly total: number | undefined
  /** Of the prompt. */
  readonly audioIn: number | undefined
  readonly imageIn: number | undefined
  /** Of the completion. */
  readonly audioOut: number | undefined
  readonly imageOut: number | undefined
}

/** Where each count stands in a usage. */
export type CountPlaces = { readonly [Count in keyof Counts]: readonly string[] }

export type Counted = Pick<RouteProfile, 'reasoning'>

export const NOTHING: Counts = {
  prompt: undefined,
  completion: undefined,
  cached: undefined,
  written: undefined,
  reasoning: undefined,
  total: undefined,
  audioIn: undefined,
  imageIn: undefined,
  audioOut: undefined,
  imageOut: undefined,
}

/** What a later report does not say stays as an earlier one has said it. */
export function countsIn(usage: unknown, places: CountPlaces, earlier: Counts): Counts {
  if (!isMembers(usage)) return earlier
  const said = (count: keyof Counts) => countIn(memberOf(usage, ...places[count])) ?? earlier[count]
  return {
    prompt: said('prompt'),
    completion: said('completion'),
    cached: said('cached'),
    written: said('written'),
    reasoning: said('reasoning'),
    total: said('total'),
    audioIn: said('audioIn'),
    imageIn: said('imageIn'),
    audioOut: said('audioOut'),
    imageOut: said('imageOut'),
  }
}

/** Whether a usage says how much was generated until then. */
export function hasCompletion(usage: unknown, { completion }: CountPlaces): boolean {
  return countIn(memberOf(usage, ...completion)) !== undefined
}

/** Parts say nothing without their whole, and are never more than it. */
export function classesOf(counts: Counts, profile: Counted): Reported {
  const whole = wholesOf(counts, profile)
  return { ...whole, ...partsIn(counts, whole) }
}

/** What was read from a cache was text first: of what is no text, as much as can be is new. */
function partsIn({ audioIn = 0, imageIn = 0, audioOut, imageOut }: Counts, whole: Reported): Pick<Reported, 'parts'> {
  const { input = 0, cacheRead = 0 } = whole
  const audio = Math.min(audioIn, input)
  return partsOf({
    input_audio: audio,
    input_image: Math.min(imageIn, input - audio),
    cache_read_audio: Math.min(audioIn - audio, cacheRead),
    output_audio: audioOut,
    output_image: imageOut,
  })
}

function wholesOf(counts: Counts, profile: Counted): Reported {
  const { prompt, cached, written } = counts
  const apart = cachesBeside(counts, profile)
  const output = outputOf(counts, apart, profile)
  if (prompt === undefined) return output === undefined ? {} : { output }
  if (apart > 0) return reportedOf({ input: prompt, output, cacheRead: cached, cacheWrite: written })
  const cacheRead = Math.min(cached ?? 0, prompt)
  const cacheWrite = Math.min(written ?? 0, prompt - cacheRead)
  return reportedOf({
    input: prompt - cacheRead - cacheWrite,
    output,
    cacheRead: cached === undefined ? undefined : cacheRead,
    cacheWrite: written === undefined ? undefined : cacheWrite,
  })
}

/** What caches have, where the vendor counts that beside the prompt. */
function cachesBeside(counts: Counts, profile: Counted): number {
  const { prompt, completion = 0, reasoning = 0, cached = 0, written = 0, total = 0 } = counts
  if (prompt === undefined) return 0
  // Reasoning that is known to be apart is in the total too, and no part of what caches have there.
  const generated = profile.reasoning === 'apart' ? completion + reasoning : completion
  return countedBeside(cached + written, { whole: prompt, excess: total - prompt - generated })
}

/**
 * What a total has beyond the prompt, caches beside it, and the completion was generated too, whatever the vendor calls it:
 * reasoning, as a rule. One that counts it apart may say so in the details alone.
 */
function outputOf(counts: Counts, caches: number, profile: Counted): number | undefined {
  const { prompt, completion, reasoning = 0, total = 0 } = counts
  if (completion === undefined) return undefined
  const inTotal = prompt === undefined ? completion : Math.max(completion, total - prompt - caches)
  return profile.reasoning === 'apart' ? Math.max(inTotal, completion + reasoning) : inTotal
}
