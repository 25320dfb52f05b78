import type { Ending, Usage } from '../calls/call.ts'
import { NO_USAGE } from '../calls/calls.ts'
import type { Operation } from '../catalogue/operation.ts'
import type { Measured } from '../catalogue/price.ts'
import { asFault, Fault } from '../kernel/fault.ts'
import { type Nanos, ZERO } from '../kernel/money.ts'
import type { Answer, Asked, Incoming } from '../upstreams/adapters/adapter.ts'
import { ADAPTERS } from '../upstreams/adapters/adapters.ts'
import type { Binding } from '../upstreams/bindings.ts'
import { UpstreamFailure } from '../upstreams/transport.ts'
import { costOf, type Terms } from './prices.ts'

/** What is known of a call before anything is held for it. */
export type Priced = {
  readonly asked: Asked
  readonly terms: Terms
  readonly mostUnits: bigint
  readonly most: Nanos
  readonly binding: Binding
}

/** What came of asking the upstream. */
export type Sent =
  | { readonly reply: Incoming; readonly failure?: undefined }
  | { readonly reply?: undefined; readonly failure: unknown; readonly certainty: 'not_sent' | 'unknown' }

export type Outcome = {
  readonly ending: Pick<Ending, 'amount' | 'forgiven' | 'usage'>
  readonly measured?: Measured | undefined
} & ({ readonly answer: Answer; readonly fault?: undefined } | { readonly answer?: undefined; readonly fault: Fault })

/** What the caller is told and what the call costs, by what came of asking the upstream. */
export function judge(operation: Operation, priced: Priced, sent: Sent): Outcome {
  if (sent.reply === undefined) return ofNoAnswer(priced, sent)
  try {
    return ofAnswer(operation, priced, sent.reply)
  } catch (error) {
    // Whatever an upstream wrote that we can't read or add up, the call has to end.
    const usage = { ...NO_USAGE, executed: true, failed: true }
    return { ending: { amount: priced.most, forgiven: true, usage }, fault: asFault(error) }
  }
}

function ofNoAnswer(priced: Priced, { failure, certainty }: Extract<Sent, { reply?: undefined }>): Outcome {
  const fault = transportFault(priced.binding, failure)
  // Nothing reached the upstream: it is as if the call had never been.
  if (certainty === 'not_sent') return { ending: { amount: null, forgiven: false, usage: NO_USAGE }, fault }
  return { ending: atOurLoss(priced), fault }
}

/** The upstream was asked and the caller gets nothing, so nothing is charged; what it may have cost is overrun. */
function atOurLoss({ terms, most, mostUnits }: Priced): Outcome['ending'] {
  return { amount: most, forgiven: true, usage: usageOf(terms, mostUnits, { failed: true }) }
}

function ofAnswer(operation: Operation, { terms, mostUnits, asked, binding }: Priced, reply: Incoming): Outcome {
  const measured = operation.price.measure(reply)
  const refusal = accountFault(operation, reply)
  const isOurs = refusal === undefined && reply.status <= LAST_STATUS
  const answer = isOurs ? ADAPTERS[operation.upstream.adapter].answer(reply, asked) : undefined
  // An answer that does not say what it used is given, and not charged: what it cost is our loss.
  const units = smaller(measured?.units ?? mostUnits, CREDIBLE * mostUnits)
  const ending = {
    amount: costOf(terms.unitPrice, units),
    forgiven: answer === undefined || measured === undefined,
    usage: usageOf(terms, units, {
      failed: reply.status >= 400 || answer === undefined,
      measured: measured && credible(measured, mostUnits),
    }),
  }
  if (answer !== undefined) return { ending, measured, answer }
  return {
    ending,
    measured,
    fault: refusal ?? transportFault(binding, new Error('the answer is not what was promised')),
  }
}

/** HTTP has none beyond, and what is not HTTP can't be answered. */
const LAST_STATUS = 599

/** What is claimed beyond so many times the bound is not believed, not even as our loss. */
const CREDIBLE = 100n

const smaller = (a: bigint, b: bigint) => (a < b ? a : b)

/** Tokens beyond what the request can have are our loss as their price is: they must not use up the caller's minute. */
function credible({ units, inputTokens = 0, outputTokens = 0 }: Measured, mostUnits: bigint): Measured {
  const most = Number(mostUnits)
  return { units, inputTokens: Math.min(inputTokens, most), outputTokens: Math.min(outputTokens, most) }
}

function usageOf(
  terms: Terms,
  units: bigint,
  { failed, measured }: { readonly failed: boolean; readonly measured?: Measured | undefined },
): Usage {
  return {
    ...NO_USAGE,
    executed: true,
    failed,
    value: measured === undefined ? ZERO : costOf(terms.published, units),
    upstreamCost: terms.providerCost === null ? ZERO : costOf(terms.providerCost, units),
    inputTokens: measured?.inputTokens ?? 0,
    outputTokens: measured?.outputTokens ?? 0,
  }
}

/** What an upstream says about our own account with it is not about the caller. */
function accountFault({ upstream }: Operation, { status, headers }: Incoming): Fault | undefined {
  if (status === 429) {
    const seconds = Number(headers['retry-after'])
    const wait = Number.isInteger(seconds) && seconds > 0 ? { retryAfterSeconds: Math.min(seconds, 3_600) } : {}
    return new Fault('upstream_rate_limit', wait)
  }
  const isAboutUs = status === 401 || status === 402 || (status === 403 && upstream.passesOnForbidden !== true)
  return isAboutUs ? new Fault('upstream_account') : undefined
}

function transportFault({ kind }: Binding, cause: unknown): Fault {
  const seconds = cause instanceof UpstreamFailure ? cause.retryAfterSeconds : undefined
  return new Fault(kind === 'native' ? 'upstream_transport' : 'managed_upstream_transport', {
    cause,
    ...(seconds !== undefined && { retryAfterSeconds: seconds }),
  })
}
