import type { ModelPricing } from '../pricing/model-pricing.ts'
import { mostFor } from '../pricing/terms.ts'
import type { ModelAsk } from '../protocols/protocol.ts'
import type { RouteProfile } from '../protocols/route-profile.ts'
import { adviceOnMoney } from '../wording/money-advice.ts'
import { type Counted, firstTokens, type GrowthPlan } from './growth.ts'

type Asked = {
  readonly ask: ModelAsk
  readonly pricing: ModelPricing
  /** Of all choices together. */
  readonly outputMost: number
  /** Of every route that may be asked. */
  readonly profiles: readonly RouteProfile[]
  readonly countsTokens: boolean
  readonly limitNames: readonly string[]
}

/**
 * How the hold of a call can grow; undefined where it can't. Whichever upstream takes it, it has to stop when it is given up, or it would
 * make the rest at the operator's cost; and what it has made has to be bounded by what is seen of it.
 */
export function growthOf(asked: Asked): GrowthPlan | undefined {
  const { ask, pricing, outputMost, profiles, countsTokens, limitNames } = asked
  const { mostWith, terms } = pricing
  if (!ask.isStream || mostWith === undefined || hasUnseen(ask)) return undefined
  const counted = profiles.every(({ abort }) => abort === 'stops') ? countedBy(profiles, ask.choices) : undefined
  if (counted === undefined) return undefined
  const heldFor = (output: number) => mostFor(terms, mostWith(output * ask.choices))
  return {
    outputMost,
    counted,
    choices: ask.choices,
    moneyAdvice: adviceOnMoney({
      outputLimit: Math.floor(firstTokens(counted) / ask.choices),
      ...{ choices: ask.choices, isDefaultLimit: ask.isDefaultLimit, isFirst: true, limitNames, heldFor },
    }),
    sliceFor(output) {
      const mostCounts = mostWith(output)
      const held = { terms, mostCounts, most: mostFor(terms, mostCounts) }
      return { held, tokens: countsTokens ? Math.max(1, ask.inputEstimate + output) : 0 }
    },
  }
}

/** Calls of tools that run at the upstream are paid for before anything is seen of them, and no bytes of pictures and sound are tokens. */
function hasUnseen({ needs, toolCalls }: ModelAsk): boolean {
  return toolCalls !== undefined || [...(needs ?? [])].some((need) => /^(tool:|output_)/.test(need))
}

/** By what is seen where all of it is; else by time, where every route says how fast it is. */
function countedBy(profiles: readonly RouteProfile[], choices: number): Counted | undefined {
  if (profiles.length === 0) return undefined
  if (profiles.every(({ output }) => output === 'seen'))
    return { by: 'text', tokenBytes: Math.min(...profiles.map(({ tokenBytes }) => tokenBytes)) }
  const speeds = profiles.map(({ topSpeed }) => topSpeed ?? Number.POSITIVE_INFINITY)
  // Choices are made beside each other.
  const tokensPerSecond = choices * Math.max(...speeds)
  return Number.isFinite(tokensPerSecond) ? { by: 'time', tokensPerSecond } : undefined
}
