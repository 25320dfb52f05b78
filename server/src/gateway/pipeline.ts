import type { Calls } from '../calls/calls.ts'
import { isSoldByUnit, type Operation } from '../catalogue/operation.ts'
import type { Clock } from '../kernel/clock.ts'
import { asFault, type Fault, noRoom } from '../kernel/fault.ts'
import { formatUsd, ZERO } from '../kernel/money.ts'
import { rateHeaders } from '../limits/headers.ts'
import type { Quotes } from '../pricing/quotes.ts'
import type { KeptSwitches } from '../pricing/switches.ts'
import { termsAsText } from '../pricing/terms.ts'
import type { Log } from '../telemetry/log.ts'
import type { HeaderNames } from '../wording/header-names.ts'
import type { Attribute } from './attribution.ts'
import { type Begin, expired, hasEnded, type RequireUnspent } from './begin.ts'
import { type CallRequest, windowsOf } from './call-request.ts'
import type { CeilingsFor } from './ceilings.ts'
import type { Drains } from './drains.ts'
import { shrunk, toldOf } from './fit.ts'
import type { CreateGrowth, Growth } from './growth.ts'
import type { FirstCall } from './idempotency.ts'
import { judge } from './judge.ts'
import type { Mandates } from './mandates.ts'
import type { Plan, Sent } from './plan.ts'
import { createPrice, type Ready } from './price.ts'
import type { QuotedAdmission } from './quoted-admission.ts'
import { runOf } from './record-detail.ts'
import type { Records } from './records.ts'
import type { Relay, RelayedAnswer } from './relay.ts'
import { requireScope, seesBalance } from './require-scope.ts'
import { refusalOfUnsold } from './require-sold.ts'
import { createSettle } from './settle.ts'
import { startStopwatch } from './stopwatch.ts'
import { createExplain, isOfApproval } from './taken-claim.ts'
import type { Overrun } from './tell-loss.ts'

export type Pipeline = (request: CallRequest) => Promise<RelayedAnswer>

type Parts = {
  /** What operators have switched off. */
  readonly switches: Pick<KeptSwitches, 'now'>
  /** Reads the request, and works out how it would run. */
  readonly plan: (request: CallRequest) => Promise<Plan>
  readonly requireUnspent: RequireUnspent
  /** Says whose spend a call is. */
  readonly attribute: Attribute
  /** And what it is held against because of that. */
  readonly ceilingsFor: CeilingsFor
  /** Whether a call could begin now that is only asked for its price. */
  readonly quotedAdmission: QuotedAdmission
  readonly begin: Begin
  readonly end: Calls['end']
  readonly quotes: Quotes
  readonly growth: CreateGrowth
  readonly drains: Drains
  readonly relay: Relay
  readonly records: Records
  /** What became of the first call with an idempotency key, as the caller of the second is told. */
  readonly firstCall: FirstCall
  /** What access tokens may spend without their person being asked. */
  readonly mandates: Mandates
  /** Tells the operator: the upstream used more than was held, or what nobody can be charged for. */
  readonly overran: (overrun: Overrun) => void
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: Pick<Log, 'calls'>
  readonly headerNames: HeaderNames
}

/** The path of every call. Each line can refuse; a refusal leaves nothing behind. */
export function createPipeline(parts: Parts): Pipeline {
  const { requireUnspent, quotedAdmission, begin, quotes, growth: createGrowth, relay, records } = parts
  const { mandates, clock, drains, headerNames, switches } = parts
  const explain = createExplain(parts)
  const price = createPrice({ ...parts, explain })
  const settle = createSettle(parts)

  return run

  /** With X-Farebox-Fit, a call that is refused for its output limit is tried again with the largest limit that fits. */
  async function run(first: CallRequest): Promise<RelayedAnswer> {
    if (first.fit === undefined) return runOnce(first)
    const { progress = {} } = first
    let request = { ...first, progress }
    let refusedFirst: unknown
    for (let tries = 1; ; tries += 1) {
      progress.reserved = false
      try {
        return await runOnce(request)
      } catch (refusal) {
        if (progress.begun) throw refusal
        const smaller = shrunk(request, refusal, tries)
        if (smaller === undefined) throw toldOf(refusal, refusedFirst)
        refusedFirst ??= refusal
        if (progress.reserved) request.memory.shrinkReply(0)
        request = smaller
      }
    }
  }

  async function runOnce(request: CallRequest): Promise<RelayedAnswer> {
    const { id, caller, operation, progress = {} } = request
    const times = startStopwatch(clock)
    // A request that its key may not make is refused before anything is worked out for it, and is not counted.
    requireScope(caller, operation)
    const switched = switches.now()
    const unsold = refusalOfUnsold(switched instanceof Promise ? await switched : switched, request)
    if (unsold === undefined) requireUnspent(request)
    const ready = await price(request, unsold)
    if (request.costMode !== undefined) return quote(request, ready)

    const { plan, held, first, claims, approval, attribution, ceilings } = ready
    // Before anything is held: what a call may need to come to its end is there when it begins.
    const isReserved = request.memory.reserveReply(plan.replyBytes, plan.replyMostBytes)
    if (isReserved !== true && !(await isReserved)) throw noRoom()
    progress.reserved = true
    if (approval !== undefined) await mandates.take(approval, request, held.most)
    const { rates, judgedAt } = await begin({
      id,
      caller,
      operation,
      hold: { amount: first.held.most, terms: termsAsText(held.terms, first.held.mostCounts) },
      tokens: first.tokens,
      claims,
      task: plan.task?.begun(id),
      attribution,
      ceilings,
      moneyAdvice: ready.moneyAdvice,
      fittingOutput: plan.fittingOutput,
    }).catch(async (refusal: unknown) => {
      if (approval !== undefined && !isOfApproval(refusal)) await mandates.giveBack(approval, id)
      return explain(request, refusal, held.most)
    })
    progress.begun = true
    times.note('begun')

    // From here on the call is ours to end, whatever happens.
    const growth =
      first.grows &&
      createGrowth(first.grows, { id, accountId: caller.accountId, windows: windowsOf(request), ceilings })
    const isLate = caller.expiresAtMs !== null && hasEnded(caller, Date.parse(judgedAt))
    const sent = isLate ? neverSent(expired(caller)) : await plan.send(id, request.memory, growth)
    times.note('answered')
    const headers: Record<string, string> = {
      ...rateHeaders(rates),
      ...plan.headers,
      [headerNames.priceVersion]: held.terms.version,
    }
    const heldNow = () => growth?.held() ?? held
    const running = { request, plan, held, first, growth, sent, times }
    if (sent.outcome === 'streaming') {
      // The body takes the call with it: it ends when the body has, not when this function returns.
      const relayed = relay({
        ...sent,
        held: heldNow,
        growth,
        endedByHeader: headerNames.endedBy,
        room: request.memory,
        began: () => times.note('firstByte'),
        drains: () => drains.begin(caller, id),
        settle: (...ended) => settle(running, ...ended),
        renderFault: request.renderFault,
        requestId: id,
      })
      if (growth !== undefined) Object.assign(headers, { [headerNames.hold]: 'growing', trailer: headerNames.endedBy })
      return { ...relayed, headers: { ...relayed.headers, ...headers, ...STREAMED } }
    }
    const short = growth === undefined ? undefined : await holdWhole(growth, plan, sent)

    request.memory.shrinkReply(sent.outcome === 'answered' ? sent.reply.body.length : 0)
    const handedOver = await plan.task?.handOver(id, sent)
    if (handedOver !== undefined) {
      times.note('firstByte')
      // The end of the task adds what it cost, and why.
      records.add(id, runOf({ ...running, status: handedOver.status }))
      // The answer that tells its end has what it cost.
      headers[headerNames.held] = formatUsd(held.most)
      return { ...handedOver, headers: { ...handedOver.headers, ...headers } }
    }

    const outcome = await judge(plan, heldNow(), sent, short)
    const { status } = outcome.answer ?? outcome.fault
    const {
      charged,
      free,
      rates: left,
    } = await settle(running, outcome, status, !('owed' in sent)).catch((error: unknown) => {
      throw asFault(error).withHeaders(headers)
    })
    if (approval !== undefined && charged === ZERO && wasUnasked(sent)) await mandates.giveBack(approval, id)
    // What was reserved and not used is there again.
    if (left !== null) Object.assign(headers, rateHeaders(left))
    headers[headerNames.cost] = formatUsd(charged)
    if (seesBalance(request.caller)) headers[headerNames.balance] = formatUsd(free)
    if (outcome.answer === undefined) throw outcome.fault.withHeaders(headers)
    const costed = sent.outcome === 'answered' && plan.withCost?.(sent.reply, outcome.answer, formatUsd(charged))
    const answer = costed || outcome.answer
    // Clients repeat some errors by themselves: they would pay again for one that was charged, or do a thing twice for a user.
    if (status >= 400 && (charged !== ZERO || mayHaveActed(operation, status))) headers['x-should-retry'] = 'false'
    return { status, headers: { ...answer.headers, ...headers }, body: answer.body }
  }

  /** Says what the call would cost. Nothing is held, charged or sent; it counts as a request. */
  async function quote({ id, caller, operation }: CallRequest, ready: Ready): Promise<RelayedAnswer> {
    const { plan, digest, held, ceilings } = ready
    const { rates, free } = await begin({ id, caller, operation, hold: null, tokens: 0, claims: [] })
    const admission = await quotedAdmission({ caller, ceilings, needed: held.most, free })
    const body = { ...quotes.issue({ caller, operation, digest }, plan), admission }
    const headers = { 'content-type': 'application/json', ...rateHeaders(rates), ...plan.headers }
    return { status: 200, headers, body: JSON.stringify(body) }
  }
}

/** Nobody on the way may keep an answer back, or keep it at all. */
const STREAMED = { 'cache-control': 'no-store', 'x-accel-buffering': 'no' }

/** By PostgreSQL's clock its key was over when it began: nobody is asked, and what was held for it is given back. */
function neverSent(failure: Fault): Extract<Sent, { outcome: 'not_sent' | 'unknown' }> {
  return { attempts: [], kind: 'native', outcome: 'not_sent', failure }
}

/** Whether no upstream can have heard of it. */
function wasUnasked({ attempts }: Sent): boolean {
  return attempts.every(({ outcome }) => outcome === 'not_sent')
}

/** What was done for a user may have been done although its upstream says that it failed, and no key keeps it from being done again. */
function mayHaveActed(operation: Operation, status: number): boolean {
  return isSoldByUnit(operation) && operation.actsFor !== undefined && (status === 408 || status >= 500)
}

/** An upstream that was asked for a stream and answers whole has made all of it: that is held for now. Why it can't be; undefined where it is. */
async function holdWhole(growth: Growth, plan: Plan, sent: Exclude<Sent, { outcome: 'streaming' }>): Promise<unknown> {
  await growth.end()
  if (sent.outcome !== 'answered') return undefined
  try {
    const measured = await plan.measure(sent.reply)
    return await growth.holdAll(measured?.outputTokens ?? 0)
  } catch {
    // What can't be read is judged next.
    return undefined
  }
}
