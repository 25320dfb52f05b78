import type { Whose } from '../limits/whose.ts'

/** What a caller reads who has met a limit: which one, whose it is, and what to do. */

type Used = { readonly limit: number; readonly retryAfterSeconds: number }

export function requestsUsed(
  whose: Whose,
  { limit, retryAfterSeconds, seconds }: Used & { readonly seconds: number },
): string {
  return `Rate limit of ${owner(whose)}: ${readable(limit)} requests per ${seconds} seconds${beside(whose)}. ${wait(whose, retryAfterSeconds)}`
}

type Tokens = Used & {
  readonly tokens: number
  readonly left: number
  readonly seconds: number
  /** Whether calls that run now have reserved what is missing. */
  readonly isInTheWay: boolean
}

export function tokensUsed(
  whose: Whose,
  { limit, left, tokens, seconds, isInTheWay, retryAfterSeconds }: Tokens,
): string {
  return [
    `This call may use up to ${readable(tokens)} tokens; ${readable(left)} of ${readable(limit)} per ${seconds} seconds are left.`,
    `The limit is that of ${owner(whose)}${beside(whose)}.`,
    ...(isInTheWay ? ['Your running calls reserve tokens; some may be free when they end.'] : []),
    wait(whose, retryAfterSeconds),
  ].join(' ')
}

export function placesTaken(
  whose: Whose,
  { limit, what, retryAfterSeconds }: Used & { readonly what: 'calls' | 'tasks' },
): string {
  return `Concurrency limit of ${owner(whose)} reached: ${limit} of ${limit} ${what} running${beside(whose)}. ${wait(whose, retryAfterSeconds)}`
}

/** Of a call that no window ever admits. */
export function tokensBeyond(
  whose: Whose,
  { tokens, limit, seconds }: { readonly tokens: number; readonly limit: number; readonly seconds: number },
): string {
  const yours = whose.limitedBy === 'key' ? 'the limit of this key' : 'your limit'
  return `This call may use up to ${readable(tokens)} tokens; ${yours} is ${readable(limit)} per ${seconds} seconds${beside(whose)}.`
}

function owner({ limitedBy }: Whose): string {
  if (limitedBy === 'key') return 'this key'
  return limitedBy === 'tier' ? 'your tier' : 'this endpoint'
}

function beside(whose: Whose): string {
  return whose.limitedBy === 'key' ? ` (its tier allows ${readable(whose.tierLimit)})` : ''
}

function wait({ limitedBy }: Whose, seconds: number): string {
  return `Retry in ${seconds} s${limitedBy === 'key' ? ', or have the key limit raised' : ''}.`
}

/** As people read numbers. */
export function readable(number: number): string {
  return number.toLocaleString('en-US')
}
