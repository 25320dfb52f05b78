import type { RouteProfile } from '../../protocols/route-profile.ts'
import type { ProbedProtocol } from './dialects.ts'
import { DIALECTS, FOLDED_LIMIT } from './dialects.ts'
import type { Observation } from './observe.ts'

/** What observations say of a vendor. Each is a verdict for one question, from nothing but what came. */

export type LimitVerdict = 'obeyed' | 'ignored' | 'refused' | 'unclear'

/** More bytes than a token of English words ever has, so that text beyond it has more tokens than the limit. */
const TOKEN_MOST_BYTES = 16
/** Vendors count a few tokens more than they show. */
const SLACK_TOKENS = 16

/** `answer` is what came without a low limit, once it is known: a vendor may cut an answer and not say so. */
export function limitVerdict(protocol: ProbedProtocol, seen: Observation, answer?: Observation): LimitVerdict {
  const { lowLimit } = DIALECTS[protocol]
  if (seen.status >= 400) return 'refused'
  if (!seen.isReadable) return 'unclear'
  if (!isWithin(seen, lowLimit)) return 'ignored'
  if (seen.isStoppedByLength) return 'obeyed'
  const isCutSilently = answer?.isReadable === true && !isWithin(answer, 2 * lowLimit)
  return isCutSilently ? 'obeyed' : 'unclear'
}

function isWithin({ text }: Observation, tokens: number): boolean {
  return Buffer.byteLength(text) <= tokens * TOKEN_MOST_BYTES
}

export type SeenLimit = { readonly member: string; readonly verdict: LimitVerdict | undefined }

/**
 * The member to send: the only one that works; null where all do, or none does. Undefined where it is not known: a wrong
 * one costs money, so that what the route says then stays.
 */
export function outputLimitOf(limits: readonly SeenLimit[]): RouteProfile['outputLimit'] | undefined {
  if (limits.some(({ verdict }) => verdict === undefined || verdict === 'unclear')) return undefined
  const obeyed = limits.filter(({ verdict }) => verdict === 'obeyed')
  if (obeyed.length === 0 || obeyed.length === limits.length) return null
  return obeyed[0]?.member ?? null
}

export type ReasoningVerdict = { readonly counted: RouteProfile['reasoning']; readonly hasSome: boolean }

/**
 * Apart: in the total and not in the output, more than all of the output, or beyond a limit that the rest of the answer
 * keeps to. Undefined where no answer had figures.
 */
export function reasoningVerdict(
  protocol: ProbedProtocol,
  whole: readonly Observation[],
  limited: readonly Observation[],
): ReasoningVerdict | undefined {
  const { hasTotal, lowLimit } = DIALECTS[protocol]
  const counts = whole.flatMap((seen) => seen.counts ?? []).filter(({ output }) => output !== undefined)
  if (counts.length === 0) return undefined
  const hasSome = counts.some(({ reasoning = 0 }) => reasoning > 0)
  const isBeside = counts.some(({ input, output = 0, reasoning = 0, total = 0 }) => {
    const isInTotalAlone = hasTotal && input !== undefined && total > input + output
    return isInTotalAlone || reasoning > output
  })
  const isBeyond = limited.some(
    ({ counts }) => (counts?.reasoning ?? 0) > 0 && (counts?.output ?? 0) > lowLimit + SLACK_TOKENS,
  )
  return { counted: isBeside || isBeyond ? 'apart' : 'within', hasSome: hasSome || isBeside }
}

export type CaseVerdict = 'folds' | 'exact' | 'refused' | 'unclear'

export function caseVerdict(seen: Observation, foldsIntoStream: boolean): CaseVerdict {
  if (seen.status >= 400) return 'refused'
  if (foldsIntoStream) return seen.isStream ? 'folds' : 'exact'
  if (!seen.isReadable) return 'unclear'
  return seen.isStoppedByLength && isWithin(seen, FOLDED_LIMIT) ? 'folds' : 'exact'
}

export type SizeVerdict = {
  readonly isLarge: boolean
  readonly bytes: number
  /** Of text, for a reported token that is no reasoning; undefined where none was reported. */
  readonly bytesPerToken: number | undefined
}

const ORDINARY_BYTES = 65_536

/** Large: far more than the text and what a protocol writes around it. */
export function sizeVerdict({ bytes, text, reported, counts }: Observation): SizeVerdict {
  const textBytes = Buffer.byteLength(text)
  const tokens = (reported.output ?? 0) - (counts?.reasoning ?? 0)
  const bytesPerToken = tokens > 0 ? textBytes / tokens : undefined
  return { isLarge: bytes > ORDINARY_BYTES + TOKEN_MOST_BYTES * textBytes, bytes, bytesPerToken }
}

/** Fewer bytes than any token has, or more than one ever has on average: the vendor counts other tokens than it shows. */
export function isCountOdd({ bytesPerToken }: SizeVerdict): boolean {
  return bytesPerToken !== undefined && (bytesPerToken < 1 || bytesPerToken > TOKEN_MOST_BYTES)
}
