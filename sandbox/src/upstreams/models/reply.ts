import { type Bill, priceClassOf } from '../../bill.ts'
import { reported, reportedPart } from '../../deviants.ts'
import type { JsonObject } from '../../json.ts'
import { type Asked, credentialIn, type Header, type Knobs, type Reply } from '../../upstream.ts'
import { type Choice, choicesFor } from './answer.ts'
import type { Counted, Dialect } from './dialect.ts'
import { spoiled } from './frames.ts'
import { type MagicModel, magicModel } from './magic-models.ts'
import type { CacheUse } from './prefixes.ts'
import type { Question } from './question.ts'
import { NO_EXTRAS } from './question.ts'
import { audioTokens, bytesOf, type Segment, segmentTokens, tokensOfBytes } from './tokens.ts'

const DELTA_BYTES = 8
const MESSAGES: Readonly<Record<number, string>> = {
  429: 'Rate limit reached. Try again in 7 seconds.',
  500: 'The server had an error while processing your request.',
}

/** The vendor's answer to a question that it does not refuse. */
export function replyTo(question: Question, cacheOf: () => CacheUse, dialect: Dialect, asked: Asked): Reply {
  const magic = magicModel(question.model)
  const status = magic.frames === 'error' && !question.isStreamed ? 500 : magic.status
  if (status !== undefined) return failure(status, question, magic, dialect, asked)
  // Looked up once, since looking also remembers.
  const cache = cacheOf()
  const remade = (knobs: Knobs) => success(question, magic, knobs, cache, dialect, asked)
  return { ...remade({}), remade }
}

/** Every account has a cache of its own. */
export function useCache(asked: Asked, place: string, segments: readonly Segment[], isAutomatic: boolean): CacheUse {
  const { prefixes, headers, nowMs } = asked
  return prefixes.use({ scope: `${credentialIn(headers)} ${place}`, segments, isAutomatic, nowMs })
}

export function failure(
  magicStatus: number | 'overloaded',
  { model, isStreamed }: Pick<Question, 'model' | 'isStreamed'>,
  { retryAfter }: MagicModel,
  dialect: Pick<Dialect, 'overloadedStatus' | 'errorBody'>,
  asked: Asked,
): Reply {
  const status = magicStatus === 'overloaded' ? dialect.overloadedStatus : magicStatus
  const headers: Header[] = retryAfter === undefined ? [] : [['retry-after', retryAfter]]
  return {
    status,
    body: dialect.errorBody(status, MESSAGES[status] ?? 'Overloaded', asked),
    tokens: 0,
    isBilled: false,
    headers,
    about: { model, isStreamed, inputTokens: 0 },
  }
}

function success(
  question: Question,
  magic: MagicModel,
  knobs: Knobs,
  cache: CacheUse,
  dialect: Dialect,
  asked: Asked,
): Reply {
  const { deviance } = asked
  const { times, outputTokens = knobs.outputTokens } = question.extras ?? NO_EXTRAS
  const choices = choicesFor(
    question,
    magic,
    outputTokens === undefined ? knobs : { ...knobs, outputTokens },
    asked.seed,
  )
  const output = outputOf(choices)
  const tier = knobs.tier ?? tierAsked(asked.body)
  const counted = countedTimes(times, { ...inputOf(question), cache, ...output, tier })
  const told = dialect.report(countedTimes(deviance.reportedTimes, counted), knobs, deviance)
  const { inputTokens } = told
  const usage = usageTold(told.usage, knobs.hidesUsage ? 'none' : magic.usage)
  const toldTimes = times * deviance.reportedTimes
  const calls = callsOf(question.webSearches, knobs)
  const answer = {
    ...{ question, choices, usage, toldTimes, deltaBytes: knobs.deltaBytes ?? DELTA_BYTES, asked },
    ...{ calls, tier },
  }
  const truth = deviance.reportedTimes === 1 ? told : dialect.report(counted, knobs, deviance)
  const bill = billOf(question.model, truth.inputTokens, counted, knobs)
  const about = { model: question.model, isStreamed: question.isStreamed, inputTokens }
  const delivery = magic.delivery && { delivery: magic.delivery }
  if (!question.isStreamed)
    return {
      status: 200,
      body: dialect.body(answer),
      tokens: output.outputTokens,
      isBilled: true,
      bill,
      about,
      ...delivery,
    }
  const bytes = visibleBytes(choices, dialect)
  const frames = () => spoiled(dialect.frames(answer), magic.frames, bytes / 2, dialect, asked)
  const stream = { frames, bytes, tokens: output.outputTokens, everyMs: knobs.deltaMs ?? magic.everyMs ?? 0 }
  return { status: 200, body: {}, tokens: 0, isBilled: true, bill, about, stream, ...delivery }
}

function inputOf({ segments, webSearches, extras = NO_EXTRAS }: Question) {
  return {
    inputTokens: segmentTokens(segments) + extras.inputTokens,
    audioTokens: audioTokens(segments),
    webSearches,
  }
}

/** The figures so many times as large. What is a part of another stays within it. */
function countedTimes(times: number, counted: Counted): Counted {
  if (times === 1) return counted
  const { cache, webSearches } = counted
  return {
    inputTokens: reported(counted.inputTokens, times),
    audioTokens: reportedPart(counted.audioTokens, times),
    cache: {
      readTokens: reportedPart(cache.readTokens, times),
      write5mTokens: reportedPart(cache.write5mTokens, times),
      write1hTokens: reportedPart(cache.write1hTokens, times),
    },
    outputTokens: reported(counted.outputTokens, times),
    reasoningTokens: reportedPart(counted.reasoningTokens, times),
    webSearches,
    tier: counted.tier,
  }
}

/** By class, each token in one of them. Directives say what the vendor counts, so it charges for that. */
function billOf(model: string, inputTokens: number, counted: Counted, knobs: Knobs): Bill {
  const { cache, outputTokens, webSearches, tier } = counted
  const audioTokens = knobs.audioIn ?? counted.audioTokens
  const { imageIn = 0, audioOut = 0, imageOut = 0 } = knobs
  const read = knobs.cacheRead ?? cache.readTokens
  const { write5m, write1h } = writesOf(cache, knobs)
  const { web_search: searches = 0, ...calls } = callsOf(webSearches, knobs)
  return {
    price_class: priceClassOf(model),
    input: Math.max(0, inputTokens - read - write5m - write1h - audioTokens - imageIn),
    audio_input: audioTokens,
    cache_read: read,
    cache_write_5m: write5m,
    cache_write_1h: write1h,
    output: outputTokens,
    web_searches: searches,
    ...(imageIn > 0 && { image_input: imageIn }),
    ...(audioOut > 0 && { audio_output: audioOut }),
    ...(imageOut > 0 && { image_output: imageOut }),
    ...(Object.keys(calls).length > 0 && { calls }),
    ...(tier !== undefined && { tier }),
  }
}

/** What went into the cache, for how long. */
export function writesOf(cache: CacheUse, { cacheWrite, cacheWrite1h }: Knobs) {
  const isSaid = cacheWrite !== undefined || cacheWrite1h !== undefined
  return {
    write5m: cacheWrite ?? (isSaid ? 0 : cache.write5mTokens),
    write1h: cacheWrite1h ?? (isSaid ? 0 : cache.write1hTokens),
  }
}

/** Calls of tools that the vendor ran. */
export function callsOf(webSearches: number, { calls }: Knobs): Readonly<Record<string, number>> {
  return calls ?? (webSearches > 0 ? { web_search: webSearches } : {})
}

const DEAR_TIERS = ['flex', 'priority']

/** What is asked for is given. */
function tierAsked(body: unknown): string | undefined {
  const { service_tier: snake, serviceTier: camel } = Object(body)
  return DEAR_TIERS.find((tier) => tier === snake || tier === camel)
}

function outputOf(choices: readonly Choice[]): { outputTokens: number; reasoningTokens: number } {
  let reasoning = 0
  for (const choice of choices) reasoning += bytesOf(choice.reasoning)
  let spoken = 0
  for (const { text, tail, calls } of choices)
    spoken += bytesOf(text, tail, ...calls.flatMap(({ name, json }) => [name, json]))
  return { outputTokens: tokensOfBytes(reasoning + spoken), reasoningTokens: tokensOfBytes(reasoning) }
}

function visibleBytes(choices: readonly Choice[], { showsReasoning }: Dialect): number {
  let bytes = 0
  for (const { reasoning, text, tail, calls } of choices)
    bytes += bytesOf(text, tail, ...calls.map(({ json }) => json), showsReasoning ? reasoning : '')
  return bytes
}

export function usageTold(usage: JsonObject, how: 'none' | 'zero' | undefined): JsonObject | undefined {
  if (how === 'none') return undefined
  return how === 'zero' ? zeroed(usage) : usage
}

function zeroed(usage: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(usage, (_, value) => (typeof value === 'number' ? 0 : value)))
}
