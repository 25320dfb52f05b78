import { milliseconds, nothing, optional, type Value, WrongValue, wholeNumber } from './directive-values.ts'

/** How a vendor differs from what its protocol says. */
export type Deviance = {
  /** The words that say so, as they came. */
  readonly words: readonly string[]
  /** Members that should limit the output, and do not. */
  readonly ignoredLimits: readonly string[]
  /** Names of members, at every depth, and of parameters are read in any case; of two that are then one the last counts. */
  readonly foldsCase: boolean
  /** `x` and `x[]` are one list. */
  readonly mergesBrackets: boolean
  /** `;` separates parameters as `&` does. */
  readonly splitsAtSemicolons: boolean
  /** `.` and a blank are `_` in the name of a parameter. */
  readonly readsDotsAsUnderscores: boolean
  /** It thinks unasked, and counts that in the total alone. */
  readonly countsReasoningApart: boolean
  /** What it counts is reported so many times as much. */
  readonly reportedTimes: number
  readonly paddingBytes: number
  /** So long nothing comes, not even a status. */
  readonly firstByteMs: number
  /** It acts on members that no protocol of these has. */
  readonly knowsExtras: boolean
  /** It answers in XML where `format` says so. */
  readonly answersInXml: boolean
  /** What becomes of an answer whose caller leaves. Undefined: a stream stops, and an answer in one piece is made in an instant. */
  readonly onAbort: 'stops' | 'runs-on' | undefined
}

export const PLAIN: Deviance = {
  words: [],
  ignoredLimits: [],
  foldsCase: false,
  mergesBrackets: false,
  splitsAtSemicolons: false,
  readsDotsAsUnderscores: false,
  countsReasoningApart: false,
  reportedTimes: 1,
  paddingBytes: 0,
  firstByteMs: 0,
  knowsExtras: false,
  answersInXml: false,
  onAbort: undefined,
}

type Change = Partial<Omit<Deviance, 'words'>>

const LARGE_BYTES = 8 * 1024 * 1024
const LARGE_LIMIT = 1024 ** 3
const SLOW_MS = 2000
const WORDS_LIMIT = 16
const LIMITS = {
  'max-tokens': ['max_tokens'],
  'max-completion-tokens': ['max_completion_tokens'],
  'max-output-tokens': ['maxOutputTokens', 'max_output_tokens'],
} as const

/** The words of a base path, and what each changes. Several are joined with `+`; what makes no sense to a vendor changes nothing. */
const DEVIATIONS: Readonly<Record<string, (value: Value) => Change>> = {
  'ignores-max-tokens': plain({ ignoredLimits: LIMITS['max-tokens'] }),
  'ignores-max-completion-tokens': plain({ ignoredLimits: LIMITS['max-completion-tokens'] }),
  'ignores-max-output-tokens': plain({ ignoredLimits: LIMITS['max-output-tokens'] }),
  'ignores-limits': plain({ ignoredLimits: Object.values(LIMITS).flat() }),
  'folds-case': plain({ foldsCase: true }),
  'merges-brackets': plain({ mergesBrackets: true }),
  'splits-at-semicolons': plain({ splitsAtSemicolons: true }),
  'dots-are-underscores': plain({ readsDotsAsUnderscores: true }),
  'loose-queries': plain({ mergesBrackets: true, splitsAtSemicolons: true, readsDotsAsUnderscores: true }),
  'reasoning-apart': plain({ countsReasoningApart: true }),
  'over-reports': plain({ reportedTimes: 10 }),
  'under-reports': plain({ reportedTimes: 0.1 }),
  'large-replies': (value) => ({ paddingBytes: optional(LARGE_BYTES, wholeNumber(1, LARGE_LIMIT))(value) }),
  'slow-first-byte': (value) => ({ firstByteMs: optional(SLOW_MS, milliseconds)(value) }),
  'knows-extras': plain({ knowsExtras: true }),
  unreadable: plain({ answersInXml: true }),
  'keeps-running-on-abort': plain({ onAbort: 'runs-on' }),
  'stops-on-abort': plain({ onAbort: 'stops' }),
}

export const DEVIANT_WORDS: readonly string[] = Object.keys(DEVIATIONS)
const PREFIX = '/deviant/'

/** The deviance that a path opens with and the path after it, or what is wrong with it. */
export function deviantAt(path: string): { readonly deviance: Deviance; readonly rest: string } | string {
  if (!path.startsWith(PREFIX)) return { deviance: PLAIN, rest: path }
  const end = path.indexOf('/', PREFIX.length)
  if (end < 0) return 'after the words of a deviant comes the prefix of an upstream'
  const deviance = devianceOf(path.slice(PREFIX.length, end).split('+'))
  return typeof deviance === 'string' ? deviance : { deviance, rest: path.slice(end) }
}

function devianceOf(words: readonly string[]): Deviance | string {
  if (words.length > WORDS_LIMIT) return `a deviant has at most ${WORDS_LIMIT} words`
  let deviance: Deviance = { ...PLAIN, words }
  for (const word of words) {
    const change = changeOf(word)
    if (typeof change === 'string') return change
    const ignoredLimits = [...deviance.ignoredLimits, ...(change.ignoredLimits ?? [])]
    deviance = { ...deviance, ...change, ignoredLimits }
  }
  return deviance
}

function changeOf(word: string): Change | string {
  const [name = '', value] = word.split('=', 2)
  const change = Object.hasOwn(DEVIATIONS, name) ? DEVIATIONS[name] : undefined
  if (change === undefined) return `there is no deviant ${name}: its words are ${DEVIANT_WORDS.join(', ')}`
  try {
    return change(value)
  } catch (error) {
    if (error instanceof WrongValue) return `${name} ${error.message}`
    throw error
  }
}

function plain(change: Change): (value: Value) => Change {
  return (value) => {
    nothing(value)
    return change
  }
}

/** The first of these members that is given and that the vendor heeds. */
export function limitIn(members: Readonly<Record<string, unknown>>, names: readonly string[], deviance: Deviance) {
  const heeded = names.filter((name) => !deviance.ignoredLimits.includes(name))
  const limit = heeded.map((name) => members[name]).find((value) => value !== undefined && value !== null)
  return limit === undefined ? undefined : Number(limit)
}

/** A count as the vendor reports it: of what there is, it never reports nothing. */
export function reported(count: number, times: number): number {
  return count > 0 ? Math.max(1, reportedPart(count, times)) : count
}

/** A count that is a part of another, of which all parts together are never more than the whole. */
export function reportedPart(count: number, times: number): number {
  return times === 1 ? count : Math.floor(count * times + ROUNDING)
}

/** A tenth is no binary fraction, and 30 × 0.1 must not be 2. */
const ROUNDING = 1e-9
