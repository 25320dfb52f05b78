/** What a caller can do about a call that its limit of tokens can never admit. */
export type TokenAdvice = (tokenLimit: number) => string

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
    const parts = `They are ${whole(inputEstimate)} of input and ${whole(output)} of output.`
    const fitting = Math.floor((tokenLimit - inputEstimate) / choices)
    if (fitting < 1) return `${parts} ${SHORTEN}`
    if (limitNames.length === 0) return `${parts} Ask for fewer at once, or for a higher limit.`
    const most = `${whole(fitting)} at most${choices > 1 ? ` (for each of ${choices} choices)` : ''}`
    const name = limitNames.join(' or ')
    return isDefaultLimit
      ? `${parts} You sent no output limit, so the model's default of ${whole(outputLimit)} counts: send ${name} of ${most}, or ask for a higher limit.`
      : `${parts} Lower ${name} to ${most}, or ask for a higher limit.`
  }
}

/** As people read numbers. */
export function whole(number: number): string {
  return number.toLocaleString('en-US')
}
