import type { Ending, Evidence, Usage } from '../calls/call.ts'
import { NO_USAGE } from '../calls/calls.ts'
import { asFault, Fault, type FaultCode } from '../kernel/fault.ts'
import { type Nanos, nanos, ZERO } from '../kernel/money.ts'
import type { Measured } from '../pricing/priced.ts'
import { type Counts, costOf, type Held, listValueOf, upstreamCostOf } from '../pricing/terms.ts'
import type { Answer, Incoming } from '../upstreams/adapters/adapter.ts'
import type { UpstreamKind } from '../upstreams/bindings.ts'
import { type Certainty, UpstreamFailure } from '../upstreams/failure.ts'
import { shortFault } from './growth.ts'
import type { Plan, Sent } from './plan.ts'

export type Outcome = {
  readonly ending: Pick<Ending, 'amount' | 'forgiven' | 'usage'> & {
    /** What there is evidence for of what it lost; what is presumed has none. */
    readonly loss?: Evidence
  }
  readonly measured?: Measured | undefined
} & ({ readonly answer: Answer; readonly fault?: undefined } | { readonly answer?: undefined; readonly fault: Fault })

type Judged = Pick<Plan, 'measure' | 'answer' | 'isAboutUs'>
type Whole = Exclude<Sent, { outcome: 'streaming' }>

/**
 * What the caller is told and what the call costs, by what came of asking the upstream. `short` says why an answer that came in
 * one piece could not be held for: nobody gets it, and nobody pays for it.
 */
export async function judge(plan: Judged, held: Held, sent: Whole, short?: unknown): Promise<Outcome> {
  if (sent.outcome !== 'answered')
    return sent.owed === undefined ? ofNoAnswer(held, sent) : ofAbandoned(held, sent, await sent.owed())
  try {
    const measured = plan.measure(sent.reply)
    return ofAnswer(plan, held, sent, { measured: measured instanceof Promise ? await measured : measured, short })
  } catch (error) {
    // Whatever an upstream wrote that we can't read or add up, the call has to end.
    return { ending: atOurLoss(held, { isUnreadable: isDelivery(sent.reply) }), fault: asFault(error) }
  }
}

/** Whether a success by its status has something in it that the upstream may have made of the request. */
function isDelivery(reply: Incoming): boolean {
  return reply.status >= 200 && reply.status < 300 && !isOutage(reply)
}

const LOOKED_AT_BYTES = 1_024

/** A page for people, or nothing: so vendors answer in an outage, with whatever status. No caller gains by it, and no ceiling counts it. */
function isOutage({ headers, body, json }: Incoming): boolean {
  if (json !== undefined) return false
  if (headers['content-type']?.trimStart().toLowerCase().startsWith('text/html') === true) return true
  const start = body.toString('utf8', 0, LOOKED_AT_BYTES).trimStart()
  return start === '' || start.startsWith('<')
}

function ofNoAnswer(held: Held, { kind, failure, outcome }: Extract<Whole, { failure: unknown }>): Outcome {
  const fault = transportFault(kind, failure)
  if (outcome === 'not_sent') return { ending: uncharged(fault), fault }
  return { ending: atOurLoss(held, { isUnreadable: false }), fault }
}

/** Nothing reached the upstream, so that nothing is charged or lost. A call that failed counts as one; a refusal is none. */
function uncharged({ status }: Fault): Outcome['ending'] {
  const hasFailed = status >= 500
  return { amount: null, forgiven: false, usage: { ...NO_USAGE, executed: hasFailed, failed: hasFailed } }
}

/** The caller has left an upstream that was at work, which was given up for it: it has got nothing, and owes what was asked. */
function ofAbandoned(held: Held, { kind, failure }: Extract<Whole, { failure: unknown }>, measured: Measured): Outcome {
  const ending = endingOf(held, measured, { forgiven: false, failed: false })
  return { measured, ending, fault: transportFault(kind, failure) }
}

/** The upstream was asked and the caller gets nothing, so nothing is charged; what it may have cost is overrun. */
function atOurLoss(held: Held, { isUnreadable }: { readonly isUnreadable: boolean }): Outcome['ending'] {
  const loss = evidenceOf(held, held.most, { isReported: false, isUnreadable })
  const usage = usageOf(held, held.mostCounts, { failed: true })
  return { amount: held.most, forgiven: true, usage, ...(loss && { loss }) }
}

function ofAnswer(
  plan: Judged,
  held: Held,
  { reply, kind }: Extract<Whole, { reply: Incoming }>,
  { measured, short }: { readonly measured: Measured | undefined; readonly short: unknown },
): Outcome {
  const refusal = short === undefined ? accountFault(plan, reply) : undefined
  const isOurs = refusal === undefined && short === undefined && reply.status <= LAST_STATUS
  const answer = isOurs ? plan.answer(reply, measured && credible(measured, held.mostCounts)) : undefined
  const ending = endingOf(held, measured, {
    // An answer that does not say what it used is given, and not charged: what it cost is our loss.
    forgiven: answer === undefined || measured === undefined,
    failed: reply.status >= 400 || answer === undefined,
    isUnreadable: answer === undefined && refusal === undefined && isDelivery(reply),
    isOutage: isOutage(reply),
  })
  if (answer !== undefined) return { ending, measured, answer }
  const cause =
    short === undefined ? new Error('the answer is not what was promised') : shortFault(short, { isWithheld: true })
  return { ending, measured, fault: refusal ?? transportFault(kind, cause) }
}

type Kind = {
  readonly forgiven: boolean
  readonly failed: boolean
  /** Whether the upstream has delivered what we can't make anything of. */
  readonly isUnreadable?: boolean
  /** Whether what came is no answer at all, so that its length says nothing about what was used. */
  readonly isOutage?: boolean
}

/** How a call ends that used so much; where that is not known, as much as it can have. */
export function endingOf(held: Held, measured: Measured | undefined, kind: Kind): Outcome['ending'] {
  const { forgiven, failed } = kind
  const { terms, mostCounts } = held
  // What is beyond the hold is our loss, and is told as the upstream claims it, however much that is.
  const counts = measured?.counts ?? mostCounts
  const amount = costOf(terms, counts)
  const loss = evidenceOf(held, amount, { isReported: measured !== undefined, ...kind })
  const used = forgiven ? undefined : measured
  return {
    amount,
    forgiven,
    ...(loss !== undefined && { loss }),
    // What is forgiven is in nobody's report and uses up nobody's minute.
    usage: usageOf(held, counts, { failed, measured: used && credible(used, mostCounts) }),
  }
}

/**
 * What counts towards the ceilings on loss: what was reported or counted beyond the hold, and all of what was delivered and can't
 * be read. Nobody is refused for what may have been: broken connections, timeouts, answers that gave nothing, pages of an outage.
 */
function evidenceOf(
  { most }: Held,
  amount: Nanos,
  {
    isReported,
    isUnreadable = false,
    isOutage = false,
  }: Omit<Kind, 'forgiven' | 'failed'> & { readonly isReported: boolean },
): Evidence | undefined {
  if (isOutage) return undefined
  if (isUnreadable) return amount > ZERO ? { nanos: amount, claim: isReported ? amount : null } : undefined
  return isReported && amount > most ? { nanos: nanos(amount - most), claim: amount } : undefined
}

/** HTTP has none beyond, and what is not HTTP can't be answered. */
const LAST_STATUS = 599

/** Values are added up by the day, and what is claimed beyond so many times the bound must not spoil the sum. */
const CREDIBLE = 100n

const smaller = (a: bigint, b: bigint) => (a < b ? a : b)
const total = (counts: Counts) => counts.reduce((sum, count) => sum + count, 0n)

function believed(counts: Counts, most: Counts): Counts {
  const limit = CREDIBLE * total(most)
  return counts.map((count) => smaller(count, limit))
}

/** Tokens beyond what the request can have are our loss as their price is: they must not use up the caller's minute. */
function credible(measured: Measured, mostCounts: Counts): Measured {
  const most = Number(total(mostCounts))
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = measured
  return {
    ...measured,
    inputTokens: Math.min(inputTokens, most),
    outputTokens: Math.min(outputTokens, most),
    cacheReadTokens: Math.min(cacheReadTokens, most),
    cacheWriteTokens: Math.min(cacheWriteTokens, most),
  }
}

function usageOf(
  { terms, mostCounts }: Held,
  counts: Counts,
  { failed, measured }: { readonly failed: boolean; readonly measured?: Measured | undefined },
): Usage {
  return {
    ...NO_USAGE,
    executed: true,
    failed,
    value: measured === undefined ? ZERO : listValueOf(terms, believed(counts, mostCounts)),
    upstreamCost: upstreamCostOf(terms, counts),
    inputTokens: measured?.inputTokens ?? 0,
    outputTokens: measured?.outputTokens ?? 0,
    cacheReadTokens: measured?.cacheReadTokens ?? 0,
    cacheWriteTokens: measured?.cacheWriteTokens ?? 0,
  }
}

/** What an upstream says about our own account with it is not about the caller. */
function accountFault({ isAboutUs }: Judged, reply: Incoming): Fault | undefined {
  const { status, headers } = reply
  if (status === 429) {
    const seconds = Number(headers['retry-after'])
    const wait = Number.isInteger(seconds) && seconds > 0 ? { retryAfterSeconds: Math.min(seconds, 3_600) } : {}
    return new Fault('upstream_rate_limit', wait)
  }
  return isAboutUs(reply) ? new Fault(status === 404 ? 'upstream_not_found' : 'upstream_account') : undefined
}

/** The caller may repeat what certainly was not sent, and not what may have been done. */
const CODES = {
  not_sent: { native: 'upstream_unreachable', managed: 'managed_upstream_unreachable' },
  unknown: { native: 'upstream_transport', managed: 'managed_upstream_transport' },
} as const satisfies Readonly<Record<Certainty, Readonly<Record<UpstreamKind, FaultCode>>>>

/** A fault of our own on the way is told as it is. */
export function transportFault(kind: UpstreamKind, cause: unknown): Fault {
  if (cause instanceof Fault) return cause
  if (!(cause instanceof UpstreamFailure)) return new Fault(CODES.unknown[kind], { cause })
  const { certainty, retryAfterSeconds } = cause
  return new Fault(CODES[certainty][kind], { cause, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) })
}
