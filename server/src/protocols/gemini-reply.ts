import { countIn, memberOf } from '../catalogue/price.ts'
import { createContentEnding } from './gemini-end.ts'
import { jsonText, wordsIn } from './generated-text.ts'
import { isGiven, isMembers } from './members.ts'
import type { ModelAsk, ReplyForm, Reported, StreamReader } from './protocol.ts'
import type { Frame } from './sse.ts'
import { countedBeside, itemsOf, partsOf, reportedOf, soundTokensOf, tierOf } from './usage.ts'
import { createWithholdingReader, type Reading } from './withholding-reader.ts'

const USAGE = 'usageMetadata'

const COUNTS = [
  ['prompt', 'promptTokenCount'],
  ['toolUse', 'toolUsePromptTokenCount'],
  ['candidates', 'candidatesTokenCount'],
  ['thoughts', 'thoughtsTokenCount'],
  ['cached', 'cachedContentTokenCount'],
  ['total', 'totalTokenCount'],
] as const

/** Tokens by what they are of, in lists that are parts of the counts above. */
const DETAILS = [
  ['audioIn', 'promptTokensDetails', 'AUDIO'],
  ['imageIn', 'promptTokensDetails', 'IMAGE'],
  ['audioCached', 'cacheTokensDetails', 'AUDIO'],
  ['imageCached', 'cacheTokensDetails', 'IMAGE'],
  ['audioOut', 'candidatesTokensDetails', 'AUDIO'],
  ['imageOut', 'candidatesTokensDetails', 'IMAGE'],
] as const

/** As the protocol counts: what was read from a cache is part of the prompt, and thoughts are beside the candidates. */
type Counts = Readonly<Partial<Record<(typeof COUNTS)[number][0] | (typeof DETAILS)[number][0], number>>>

const NONE: Counts = { prompt: 0, toolUse: 0, candidates: 0, thoughts: 0, cached: 0 }

export function usageOf(json: unknown): Reported {
  const usage = memberOf(json, USAGE)
  return { ...classesOf(countsIn(usage, {}, true)), ...tierIn(usage) }
}

/** A prompt that was blocked has no candidates. */
export function formOf(json: unknown): ReplyForm {
  if (memberOf(json, 'error')) return 'nothing'
  return Array.isArray(memberOf(json, 'candidates')) || isBlocked(json) ? 'answer' : 'unreadable'
}

/** Pictures and sound, which nobody can count. */
export function hasMedia(json: unknown): boolean {
  return itemsOf(memberOf(json, 'candidates')).some((candidate) =>
    itemsOf(memberOf(candidate, 'content', 'parts')).some((part) =>
      MEDIA.some((name) => isGiven(memberOf(part, name))),
    ),
  )
}

const MEDIA = ['inlineData', 'inline_data', 'fileData', 'file_data']

export function textOf(json: unknown): string {
  return textIn(itemsOf(memberOf(json, 'candidates')))
}

/**
 * The answer ends with the frame that has the last finish reason that is still missing, or with the news that the prompt
 * was blocked; the stream ends with its body. Every frame may report what has been used so far.
 */
export function createReader({ choices }: Pick<ModelAsk, 'choices'>): StreamReader {
  const finished = new Set<unknown>()
  let counts: Counts = {}
  let tier: Pick<Reported, 'tier'> = {}
  let isStopped = false
  let soundChars = 0
  const at: ArgumentPath = { last: '' }

  function read(_: Frame, json: unknown): Reading {
    if (!isMembers(json)) return {}
    const candidates = itemsOf(memberOf(json, 'candidates'))
    for (const candidate of candidates) if (isFinished(candidate)) finished.add(memberOf(candidate, 'index') ?? 0)
    const isError = Boolean(memberOf(json, 'error'))
    const isStop = !isError && (finished.size >= choices || (candidates.length === 0 && isBlocked(json)))
    isStopped ||= isStop
    const text = textIn(candidates, at)
    soundChars += soundIn(candidates)
    const usage = memberOf(json, USAGE)
    counts = countsIn(usage, text === '' ? counts : withoutCandidates(counts), isStopped)
    tier = { ...tier, ...tierIn(usage) }
    return { text, isError, isStop, takesCost: isMembers(usage) ? 'in_usage' : isStop ? 'beside' : undefined }
  }

  const reader = createWithholdingReader({
    read,
    reported: () => ({ ...classesOf(counts), ...soundTokensOf(soundChars), ...tier }),
    usagePath: [USAGE],
    ending: createContentEnding(choices),
  })
  // Some upstreams write a finish reason into every frame: then only the end of the body is the end.
  return { ...reader, hasStopOfItsOwn: false }
}

function isFinished(candidate: unknown): boolean {
  const reason = memberOf(candidate, 'finishReason')
  return Boolean(reason) && reason !== 'FINISH_REASON_UNSPECIFIED'
}

function isBlocked(json: unknown): boolean {
  const reason = memberOf(json, 'promptFeedback', 'blockReason')
  return Boolean(reason) && reason !== 'BLOCK_REASON_UNSPECIFIED'
}

/**
 * Upstreams of this protocol leave out counts that are zero. So, in the last report of an answer, what is left out is zero
 * where the others add up to the total; where they do not, or there is no total, it was not said. In the middle of a
 * stream it is never zero: the count may be missing because it is not known yet. What a later report does not say stays as
 * an earlier one has said it.
 */
function countsIn(usage: unknown, earlier: Counts, isLast: boolean): Counts {
  if (!isMembers(usage)) return earlier
  const said: { -readonly [Name in keyof Counts]: Counts[Name] } = {}
  let isReadable = true
  for (const [name, member] of COUNTS) {
    const value = memberOf(usage, member)
    const count = countIn(value)
    if (count !== undefined) said[name] = count
    else if (isGiven(value)) isReadable = false
  }
  for (const [name, member, modality] of DETAILS) {
    const tokens = tokensOf(memberOf(usage, member), modality)
    if (tokens !== undefined) said[name] = tokens
  }
  const { prompt = 0, toolUse = 0, candidates = 0, thoughts = 0, total } = said
  const isWhole = isLast && isReadable && total === prompt + toolUse + candidates + thoughts
  return isWhole ? { ...NONE, ...said } : { ...earlier, ...said }
}

function tokensOf(details: unknown, modality: string): number | undefined {
  let tokens: number | undefined
  for (const detail of itemsOf(details))
    if (memberOf(detail, 'modality') === modality)
      tokens = (tokens ?? 0) + (countIn(memberOf(detail, 'tokenCount')) ?? 0)
  return tokens
}

const TRAFFIC = /^ON_DEMAND_(PRIORITY|FLEX)$/

/** One of its two interfaces says it as a tier, the other as a type of traffic. */
function tierIn(usage: unknown): Pick<Reported, 'tier'> {
  const traffic = memberOf(usage, 'trafficType')
  const [, named] = TRAFFIC.exec(typeof traffic === 'string' ? traffic : '') ?? []
  return tierOf(memberOf(usage, 'serviceTier') ?? named ?? traffic)
}

/** An earlier report has not counted what was written since: where nothing newer is said, all of it is to be counted. */
function withoutCandidates({ candidates: _, ...rest }: Counts): Counts {
  return rest
}

function classesOf(counts: Counts): Reported {
  const whole = wholesOf(counts)
  return { ...whole, ...partsIn(counts, whole) }
}

/** Where it is not said what the cache had, that was text first: of what is no text, as much as can be is new. */
function partsIn(counts: Counts, { input = 0, cacheRead = 0 }: Reported): Pick<Reported, 'parts'> {
  const { audioIn = 0, imageIn = 0, audioCached = 0, imageCached = 0, audioOut, imageOut } = counts
  const audio = Math.min(Math.max(0, audioIn - audioCached), input)
  return partsOf({
    input_audio: audio,
    input_image: Math.min(Math.max(0, imageIn - imageCached), input - audio),
    cache_read_audio: Math.min(audioIn - audio, cacheRead),
    output_audio: audioOut,
    output_image: imageOut,
  })
}

/** Parts say nothing without their whole, and are never more than it. */
function wholesOf({ prompt, toolUse = 0, candidates, thoughts = 0, cached, total = 0 }: Counts): Reported {
  const input = prompt === undefined ? undefined : prompt + toolUse
  const excess = Math.max(0, total - (input ?? total) - (candidates ?? 0) - thoughts)
  const beside = input === undefined ? 0 : countedBeside(cached ?? 0, { whole: input, excess })
  const cacheRead = Math.min(cached ?? 0, (input ?? 0) + beside)
  return reportedOf({
    input: input === undefined ? undefined : input + beside - cacheRead,
    // What a total has beyond all of them was generated too.
    output: candidates === undefined ? undefined : candidates + thoughts + excess - beside,
    cacheRead: input === undefined || cached === undefined ? undefined : cacheRead,
    // Nothing in this protocol says what was written to a cache.
    cacheWrite: undefined,
  })
}

/** What the model wrote, thoughts and calls of functions too. The last path of arguments that come in parts is kept in `at`. */
function textIn(candidates: readonly unknown[], at: ArgumentPath = { last: '' }): string {
  let text = ''
  for (const candidate of candidates) {
    for (const part of itemsOf(memberOf(candidate, 'content', 'parts'))) text += generatedIn(part, at)
  }
  return text
}

const SOUND = /^\s*audio\//i

/** How long the sound is that they have, in characters of base64. */
function soundIn(candidates: readonly unknown[]): number {
  let chars = 0
  for (const candidate of candidates)
    for (const part of itemsOf(memberOf(candidate, 'content', 'parts'))) {
      const data = memberOf(part, 'inlineData') ?? memberOf(part, 'inline_data')
      const type = wordsIn(memberOf(data, 'mimeType') ?? memberOf(data, 'mime_type'))
      if (SOUND.test(type)) chars += wordsIn(memberOf(data, 'data')).length
    }
  return chars
}

type ArgumentPath = { last: string }

function generatedIn(part: unknown, at: ArgumentPath): string {
  const call = memberOf(part, 'functionCall')
  let text = wordsIn(memberOf(part, 'text')) + wordsIn(memberOf(call, 'name')) + jsonText(memberOf(call, 'args'))
  for (const argument of itemsOf(memberOf(call, 'partialArgs'))) text += argumentIn(argument, at)
  return text
}

/** The path stands in every part of a value, and was written once. */
function argumentIn(argument: unknown, at: ArgumentPath): string {
  const path = wordsIn(memberOf(argument, 'jsonPath'))
  const name = path === at.last ? '' : path
  at.last = path
  let text = name + wordsIn(memberOf(argument, 'stringValue'))
  for (const member of ['numberValue', 'boolValue']) {
    const value = memberOf(argument, member)
    if (typeof value === 'number' || typeof value === 'boolean') text += String(value)
  }
  return text
}
