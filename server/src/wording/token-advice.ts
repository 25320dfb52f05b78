import type { CallerLimits } from '../catalogue/key-rates.ts'
import { Fault } from '../kernel/fault.ts'
import { whoseIs } from '../limits/whose.ts'
import type { Window } from '../limits/window.ts'
import { readable, tokensBeyond } from './limit-words.ts'

/** What a caller can do about a call that its limit of tokens can never admit. */
export type TokenAdvice = (tokenLimit: number) => string

/** The largest output limit with which a call reserves no more than so many tokens; undefined where none would help. */
export type FittingOutput = (tokens: number) => number | undefined

/** What a call of a model reserves: its input by estimate, and all of the output that it may have. */
export type Reserve = {
  readonly inputEstimate: number
  /** Of each choice. */
  readonly outputLimit: number
  readonly choices: number
  /** Whether the caller named no limit, so that it is the model's default. */
  readonly isDefaultLimit: boolean
  /** The members by which a caller limits output; none where it can't. */
  readonly limitNames: readonly string[]
}

const SHORTEN = 'Shorten the request, or ask for a higher limit.'

/** Says what the tokens are made of, and the largest output limit with which the call would fit. */
export function adviceOn({ inputEstimate, outputLimit, choices, isDefaultLimit, limitNames }: Reserve): TokenAdvice {
  return (tokenLimit) => {
    const output = outputLimit * choices
    if (output === 0) return SHORTEN
    const parts = `That is ${readable(inputEstimate)} input and ${readable(output)} output tokens.`
    const fitting = Math.floor((tokenLimit - inputEstimate) / choices)
    if (limitNames.length === 0)
      return `${parts} ${withoutOutputLimit({ inputEstimate, outputLimit, choices }, tokenLimit)}`
    if (fitting < 1) return `${parts} ${SHORTEN}`
    const most = `${readable(fitting)} at most${choices > 1 ? ` (for each of ${choices} choices)` : ''}`
    const name = limitNames.join(' or ')
    return isDefaultLimit
      ? `${parts} You sent no output limit, so the model's default of ${readable(outputLimit)} counts. Send ${name} of ${most}, or ask for a higher limit.`
      : `${parts} Lower ${name} to ${most}, or ask for a higher limit.`
  }
}

export function fittingOutputOf({ inputEstimate, outputLimit, choices, limitNames }: Reserve): FittingOutput {
  return (tokens) => {
    const fitting = Math.floor((tokens - inputEstimate) / choices)
    return limitNames.length > 0 && fitting >= 1 && fitting < outputLimit ? fitting : undefined
  }
}

/** As a refusal tells it. */
export function fittingMembers(fitting: number | undefined): Readonly<Record<string, number>> {
  return fitting === undefined ? {} : { fitting_output_limit: fitting }
}

/** What helps where the output of each choice is what it is. */
function withoutOutputLimit(
  { inputEstimate, outputLimit, choices }: Pick<Reserve, 'inputEstimate' | 'outputLimit' | 'choices'>,
  tokenLimit: number,
): string {
  if (choices > 1 && inputEstimate + outputLimit <= tokenLimit) return 'Ask for fewer at once, or for a higher limit.'
  return outputLimit < tokenLimit ? SHORTEN : 'Ask for a higher limit.'
}

type Reserving = {
  readonly tokens: number
  readonly tokenAdvice?: TokenAdvice
  readonly fittingOutput?: FittingOutput
}

/** Throws where a call alone, or what it begins with, exceeds a limit of tokens: no window ever admits it, and whoever waits for one waits in vain. */
export function requireWithinTokenLimits(
  { tokens: all, tokenAdvice, fittingOutput }: Reserving,
  windows: readonly Window[],
  limits: CallerLimits,
  tokens = all,
): void {
  for (const { tokenLimit, seconds, group } of windows) {
    if (tokenLimit === null || tokens <= tokenLimit) continue
    const advice = tokenAdvice?.(tokenLimit) ?? SHORTEN
    const whose = whoseIs(limits, group, 'tokensPerMinute')
    throw new Fault('quota_exceeded', {
      detail: `${tokensBeyond(whose, { tokens, limit: tokenLimit, seconds })} ${advice}`,
      members: {
        needed_tokens: tokens,
        limit_tokens: tokenLimit,
        limited_by: whose.limitedBy,
        ...fittingMembers(fittingOutput?.(tokenLimit)),
      },
    })
  }
}
