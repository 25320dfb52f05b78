import type { Random } from '../../sandbox/src/random.ts'
import type { Question } from './speeches.ts'

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
  const model = random.pick(STREAMED)
  return { ...question(random, model, paceOf(random, model)), isStream: true, wantsUsage: random.chance(0.6) }
}

/** One whose answer comes in one piece. */
export function wholeQuestion(random: Random, words: string): Question {
  return { ...question(random, random.pick(WHOLE), words), isStream: false, wantsUsage: false }
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
