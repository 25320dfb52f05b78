import { EMBEDDING_MODEL, IMAGE_MODEL, IMAGE_TOKENS_MODEL } from '../../harness/seed.ts'
import type { Random } from '../../sandbox/src/random.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { OUTPUT_MOST } from '../acceptance/deviants/vendors.ts'
import { DEVIANTS, GROWING_MODEL, modelOf } from './deviants.ts'
import type { Question } from './speech.ts'
import { KINDS, pictures, VECTORS } from './whole-speeches.ts'

/** The models that are asked, as often as they stand here: most answer well, some report nothing, some break off. */
const STREAMED = [
  'sandbox/text',
  'sandbox/text',
  'sandbox/text',
  'sandbox/text',
  'sandbox/echo',
  'sandbox/echo',
  'sandbox/echo',
  'sandbox/slow',
  'sandbox/slow',
  'sandbox/no-usage',
  'sandbox/no-usage',
  'sandbox/zero-usage',
  'sandbox/cut-mid-stream',
  'sandbox/error-mid-stream',
] as const
const WHOLE = ['sandbox/text', 'sandbox/text', 'sandbox/echo', 'sandbox/no-usage', 'sandbox/zero-usage'] as const

/** Those that break their streams off by themselves. */
export const BREAKING: ReadonlySet<string> = new Set(['sandbox/cut-mid-stream', 'sandbox/error-mid-stream'])
export const REPORTS_NOTHING = 'sandbox/no-usage'
export const REPORTS_ZERO = 'sandbox/zero-usage'

/** Enough for what the models here say, and little to hold. */
const OUTPUT_LIMIT = 300

/** A stream of a fifth of a second to five, at the pace of its deltas of eight bytes. */
export function streamedQuestion(random: Random): Question {
  if (random.chance(DEVIANT)) return { ...deviantQuestion(random), isStream: true, wantsUsage: random.chance(0.6) }
  const model = random.pick(STREAMED)
  return { ...question(random, model, paceOf(random, model)), isStream: true, wantsUsage: random.chance(0.6) }
}

/** One whose answer comes in one piece. */
export function wholeQuestion(operation: string, random: Random, words: string): Question {
  if (VECTORS.some((speech) => speech.operation === operation))
    return { ...WHOLLY, model: EMBEDDING_MODEL, words: hiding(random, words) }
  if (operation === pictures.operation) return pictureQuestion(random, words)
  if (random.chance(DEVIANT)) return { ...deviantQuestion(random), ...WHOLLY }
  return { ...question(random, random.pick(WHOLE), words), ...WHOLLY }
}

/** Of the questions: those to vendors that deviate. */
const DEVIANT = 0.2

/** One that holds more as it grows: from an answer within the first slice to one of several, always with room for more, as agents ask. */
export function growingQuestion(random: Random): Question {
  const words = `sandbox:output-tokens=${random.between(100, 3_500)} sandbox:delta-bytes=80 sandbox:delta-ms=${random.between(1, 20)}`
  return { model: GROWING_MODEL, words, outputLimit: OUTPUT_MOST, isStream: true, wantsUsage: random.chance(0.6) }
}

/** With a limit far below what the vendor would say, or with that of the model. */
function deviantQuestion(random: Random): Pick<Question, 'model' | 'words' | 'outputLimit'> {
  const vendor = DEVIANTS[random.between(0, DEVIANTS.length - 1)] ?? fail()
  const words = `sandbox:output-tokens=${random.between(100, 1_200)} sandbox:delta-bytes=40 sandbox:delta-ms=${random.between(1, 20)}`
  return { model: modelOf(vendor), words, ...(random.chance(0.7) && { outputLimit: random.between(70, 200) }) }
}

const WHOLLY = { isStream: false, wantsUsage: false } as const
const CHEAP = KINDS.filter(({ price }) => price < usd('0.1'))

/** By the piece or by the token; now and then the upstream makes another number than it was asked for. */
function pictureQuestion(random: Random, words: string): Question {
  const isByPiece = random.chance(0.6)
  const { kind: _, price: __, ...kind } = CHEAP[random.between(0, CHEAP.length - 1)] ?? fail()
  const others = random.chance(0.4) ? ` sandbox:images=${random.between(1, 3)}` : ''
  return {
    ...WHOLLY,
    model: isByPiece ? IMAGE_MODEL : IMAGE_TOKENS_MODEL,
    words: isByPiece ? words + others : hiding(random, words + others),
    pictures: { n: random.between(1, 3), ...kind },
  }
}

/** Now and then the upstream does not say what was used. */
function hiding(random: Random, words: string): string {
  return random.chance(0.15) ? `${words} sandbox:no-usage` : words
}

function fail(): never {
  throw new Error('there is nothing to choose from')
}

function question(random: Random, model: string, words: string): Pick<Question, 'model' | 'words' | 'outputLimit'> {
  // What is in a cache is told by those who report only; a part of the prompt, which has more tokens than that.
  const isCached = model !== REPORTS_NOTHING && random.chance(0.2)
  const caches = isCached
    ? ` sandbox:cache-read=${random.between(1, 9)} sandbox:cache-write=${random.between(1, 6)}`
    : ''
  return { model, words: words + caches, ...(random.chance(0.7) && { outputLimit: OUTPUT_LIMIT }) }
}

function paceOf(random: Random, model: string): string {
  const dice = random.fraction()
  if (dice < 0.03) return 'sandbox:status=500'
  if (dice < 0.1) return `sandbox:delay=${random.between(5, 1_500)}`
  if (model === 'sandbox/slow') return ''
  if (dice < 0.25) return `sandbox:output-tokens=${random.between(120, 220)} sandbox:delta-ms=${random.between(30, 60)}`
  return `sandbox:delta-ms=${random.between(5, 30)}`
}
