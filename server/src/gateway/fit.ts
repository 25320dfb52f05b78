import type { Caller } from '../identity/caller.ts'
import { Fault } from '../kernel/fault.ts'

/** What is to become of a call whose output limit is more than there is for it: it is made with what there is. Without it, it is refused. */
export const FITS = ['shrink'] as const

/** What of a call says whether it can be made smaller. */
type Fitting = {
  readonly caller: Pick<Caller, 'token'>
  readonly fit?: string | undefined
  readonly quoteId: string | undefined
  readonly costMode: string | undefined
  readonly outputAtMost?: number | undefined
}

/** More than there are limits that can each be the next one in the way; after so many, somebody else takes what is free each time. */
const TRIES_MOST = 8

/** Fewer output tokens are no answer that anybody would pay the input for, and vendors refuse them: OpenAI's Responses take no limit below it. */
const LEAST_TOKENS = 16

/**
 * The same call with the largest output limit that would fit, as its refusal says; undefined where that says none. A quote has fixed its
 * request, and whoever spends within a mandate is asked for calls as they are.
 */
export function shrunk<T extends Fitting>(request: T, refusal: unknown, tries: number): T | undefined {
  const { fit, caller, quoteId, costMode, outputAtMost = Number.POSITIVE_INFINITY } = request
  if (fit === undefined || tries >= TRIES_MOST || caller.token !== null) return undefined
  if (quoteId !== undefined || costMode !== undefined || !(refusal instanceof Fault)) return undefined
  const { fitting_output_limit: limit } = refusal.members
  if (typeof limit !== 'number' || limit < LEAST_TOKENS || limit >= outputAtMost) return undefined
  return { ...request, outputAtMost: limit }
}

/**
 * A call that is wrong once it is smaller was refused for what it was, and not for what its caller sent. Nor can one be begun whose id was
 * voided, because PostgreSQL had not answered to its first sending.
 */
export function toldOf(refusal: unknown, first: unknown): unknown {
  return first !== undefined && refusal instanceof Fault && OF_THE_SMALLER.has(refusal.code) ? first : refusal
}

const OF_THE_SMALLER: ReadonlySet<string> = new Set(['invalid_request', 'internal_error'])
