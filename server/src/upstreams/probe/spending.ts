import { bound, formatUsd, type Nanos, nanos, plus, type UnitPrice, ZERO } from '../../kernel/money.ts'
import { add, multiply, rational } from '../../kernel/rational.ts'
import { LOW_LIMITS } from './dialects.ts'
import type { Experiment } from './experiments.ts'
import type { Observation } from './observe.ts'

/** What a token costs us at the vendor, at the most that we know. */
export type ProbeRates = { readonly input: UnitPrice; readonly output: UnitPrice }

/** What the question's natural answer has at the most, with reasoning that nobody has asked for. Declared, not measured. */
const ANSWER_MOST_TOKENS = 1_024
/** For what a vendor's template adds to a question. */
const TEMPLATE_TOKENS = 300
/** Where nothing is reported, text counts as a token for so many bytes: more than any vendor makes of English words. */
const BYTES_PER_TOKEN = 2

/** What is known to be spent, by what was reported or counted, and what it can have been at the most. */
export type Spending = { readonly known: Nanos; readonly most: Nanos }

export type Purse = {
  /** Whether an experiment that costs so much at the most is still within the budget. */
  readonly holds: (most: Nanos) => boolean
  readonly take: (spent: Spending) => void
  readonly spent: () => Spending
}

/** Never lets an experiment begin whose worst case, added to the worst case of those before, passes the budget. */
export function createPurse(budget: Nanos): Purse {
  let known = ZERO
  let most = ZERO
  return {
    holds: (next) => plus(most, next) <= budget,
    take(spent) {
      known = plus(known, spent.known)
      most = plus(most, spent.most)
    },
    spent: () => ({ known, most }),
  }
}

/** The worst case: no tokenizer makes more than a token of a byte, and only a limit that was seen to work bounds the answer. */
export function mostOf(experiment: Experiment, rates: ProbeRates, outputMost: number): Nanos {
  const input = Buffer.byteLength(experiment.body) + TEMPLATE_TOKENS
  const output = Math.min(experiment.limit ?? ANSWER_MOST_TOKENS, outputMost)
  return costOf({ input, output: Math.max(output, LOW_LIMITS.responses) }, rates)
}

/** A vendor that answers with more than we thought possible has cost that much. An answer that we left counts as whole. */
export function spendingOf(experiment: Experiment, seen: Observation, rates: ProbeRates, worst: Nanos): Spending {
  if (seen.status >= 400) return { known: ZERO, most: ZERO }
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = seen.reported
  const hasInput = seen.reported.input !== undefined
  const known = costOf(
    {
      input: hasInput ? input + cacheRead + cacheWrite : countedIn(experiment.body),
      output: Math.max(output, seen.reported.output === undefined ? countedIn(seen.text) : 0),
    },
    rates,
  )
  return { known, most: nanos(known > worst ? known : worst) }
}

function countedIn(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN)
}

function costOf(tokens: { readonly input: number; readonly output: number }, { input, output }: ProbeRates): Nanos {
  const times = (count: number, price: UnitPrice) => multiply(rational(BigInt(count)), price)
  return bound(add(times(tokens.input, input), times(tokens.output, output)))
}

/** Without the places that say nothing. */
export function usdText(amount: Nanos): string {
  return formatUsd(amount).replace(/(\.\d\d\d*?)0+$/, '$1')
}
