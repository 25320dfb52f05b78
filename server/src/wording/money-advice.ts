import { largestThat } from '../kernel/largest.ts'
import { type Nanos, nanos, shortUsd } from '../kernel/money.ts'
import { type Counts, mostFor, type Terms } from '../pricing/terms.ts'
import { OVERHEAD } from '../protocols/bound.ts'
import { readable } from './limit-words.ts'

/** What a caller can do about a call whose hold is more than there is. What is left is null where the caller is not told of it. */
export type MoneyAdvice = (left: Nanos | null) => Advice | undefined

export type Advice = {
  readonly words: string
  readonly members: Readonly<Record<string, number>>
}

/** What a call of a model is held for: its input, and all of the output that it may have. */
export type HeldOutput = {
  /** Of each choice. */
  readonly outputLimit: number
  readonly choices: number
  /** Whether the caller named no limit, so that it is the model's default. */
  readonly isDefaultLimit: boolean
  /** The members by which a caller limits output; none where it can't. */
  readonly limitNames: readonly string[]
  /** The bound of the input, in tokens. */
  readonly inputMost?: number
  /** Whether that is only the first of what it may come to hold. */
  readonly isFirst?: boolean
  /** What the same call would hold with another output limit, and with so many more tokens of input. */
  readonly heldFor: (outputLimit: number, moreInput?: number) => Nanos
}

/** A limit that is not there yet is in the bound of the input when it is: as many bytes as its name and number have, and more. */
const NAMED_TOKENS = 64

/** Says how much of the hold is for the output limit, and the largest one with which the call certainly fits. */
export function adviceOnMoney(held: HeldOutput): MoneyAdvice | undefined {
  const { outputLimit, choices, isDefaultLimit, limitNames, heldFor, inputMost, isFirst = false } = held
  if (outputLimit === 0 || limitNames.length === 0) return undefined
  const name = limitNames.join(' or ')
  return (left) => {
    const parts = `${shortUsd(nanos(heldFor(outputLimit) - heldFor(0)))} USD of the hold is for the ${isFirst ? `first ${readable(outputLimit)} tokens of output` : `output limit of ${readable(outputLimit)} tokens`}${each(choices)}`
    const origin = isDefaultLimit && !isFirst ? ", the model's default as you sent none" : ''
    if (left === null) return { words: `${parts}${origin}. Send a lower ${name}.`, members: {} }
    const fitting = fittingOf(held, left)
    if (fitting < 1)
      return {
        words: `${parts}${origin}. The input alone holds ${shortUsd(heldFor(0))} USD, so no ${name} fits. ${inputWords(inputMost)}`,
        members: {},
      }
    return {
      words: `${parts}${origin}. This call fits with ${name} of ${readable(fitting)} or less.`,
      members: { fitting_output_limit: fitting },
    }
  }
}

/** A parameter that a price is multiplied by: seconds of a video, pictures of a call. */
type HeldUnits = {
  readonly name: string
  readonly units: number
  readonly terms: Terms
  /** What is held for with so many of them. */
  readonly mostOf: (units: number) => Counts
}

/** Each of the units holds as much as any other. */
export function proportional(most: Counts, units: number): HeldUnits['mostOf'] {
  return (fewer) => most.map((count) => (count * BigInt(fewer)) / BigInt(units))
}

/** Names the costly parameter, and the largest value of it with which the call fits. */
export function adviceOnUnits({ name, units, terms, mostOf }: HeldUnits): MoneyAdvice {
  const heldFor = (fewer: number) => mostFor(terms, mostOf(fewer))
  return (left) => {
    const costly = `What costs is ${name}: ${readable(units)}.`
    if (left === null) return { words: `${costly} Send a lower one.`, members: {} }
    const fitting = largestThat((fewer) => heldFor(fewer) <= left, 0, units)
    if (fitting >= 1) return { words: `${costly} This call fits with at most ${readable(fitting)}.`, members: {} }
    return { words: `${costly} Even 1 holds ${shortUsd(heldFor(1))} USD. More money is needed.`, members: {} }
  }
}

/** What is mostly the template's does not become less by writing less. */
function inputWords(inputMost: number | undefined): string {
  if (inputMost === undefined) return 'Shorten the request.'
  const bound = `Its bound is ${readable(inputMost)} tokens: its bytes, and ${OVERHEAD.request} and more for what the provider's template may add.`
  return inputMost < 2 * OVERHEAD.request ? `${bound} More money is needed.` : `${bound} Shorten the request.`
}

function each(choices: number): string {
  return choices > 1 ? ` for each of ${choices} choices` : ''
}

/** The largest limit below the one asked for whose hold is within what is left; 0 where there is none. More output never holds less. */
function fittingOf({ outputLimit, isDefaultLimit, heldFor }: HeldOutput, left: Nanos): number {
  const moreInput = isDefaultLimit ? NAMED_TOKENS : 0
  return largestThat((limit) => heldFor(limit, moreInput) <= left, 0, outputLimit)
}
