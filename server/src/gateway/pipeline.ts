import type { Attribution, Claim, Settlement, TaskEnd, Usage } from '../calls/call.ts'
import { type Calls, NO_USAGE } from '../calls/calls.ts'
import { HOLDINGS } from '../catalogue/holding.ts'
import { ON_DISCONNECT } from '../catalogue/on-disconnect.ts'
import { isSoldByUnit, isTask, type Operation } from '../catalogue/operation.ts'
import type { Ceiling } from '../identity/account-budgets.ts'
import type { Caller } from '../identity/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import { asFault, Fault, noRoom } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Lease } from '../kernel/memory-budget.ts'
import { formatUsd, type Nanos, usd, ZERO } from '../kernel/money.ts'
import { askOf } from '../limits/ask.ts'
import { rateHeaders } from '../limits/headers.ts'
import type { Window } from '../limits/window.ts'
import type { Quotes } from '../pricing/quotes.ts'
import { type Held, mostFor, termsAsText } from '../pricing/terms.ts'
import type { Attribute } from './attribution.ts'
import { type Begin, ClaimTaken, type RequireUnspent } from './begin.ts'
import type { CeilingsFor } from './ceilings.ts'
import { FITS, shrunk, toldOf } from './fit.ts'
import { type CreateGrowth, firstSlice, type Growth, type GrowthPlan, type Slice } from './growth.ts'
import { type HeaderNames, noQuotes, requireOwnWord } from './header-names.ts'
import { type FirstCall, IDEMPOTENCY, idempotencyClaim, isKey } from './idempotency.ts'
import { judge, type Outcome } from './judge.ts'
import { lossRoute } from './loss-guard.ts'
import { APPROVAL, type Mandates, NotAsked } from './mandates.ts'
import { capPassed } from './money-words.ts'
import type { Plan, Sent } from './plan.ts'
import type { QuotedAdmission } from './quoted-admission.ts'
import { priceOf, runOf } from './record-detail.ts'
import type { Records } from './records.ts'
import type { Relay, RelayedAnswer } from './relay.ts'
import { digestOf } from './request-digest.ts'
import { requireBudget } from './require-budget.ts'
import { requireModelScope, requireScope, seesBalance } from './require-scope.ts'
import { requireWord } from './require-word.ts'
import { type Stopwatch, startStopwatch } from './stopwatch.ts'
import type { Overrun } from './tell-loss.ts'
import { requireWithinTokenLimits } from './token-advice.ts'

/** A call that somebody wants, whoever asks: an HTTP client, an agent, or a task. */
export type CallRequest = {
  readonly id: Id
  readonly caller: Caller
  readonly operation: Operation
  /** The query string without its question mark, byte for byte. */
  readonly query: string
  readonly rawBody: Buffer | null
  /** Of a large body: what makes the request the same as another, worked out beside the event loop. */
  readonly digest?: string | undefined
  /** Reads the body as JSON, or throws the fault that says why it is none. */
  readonly readBody: () => unknown
  /** The most that the caller wants to pay, in decimal USD. */
  readonly maxCost: string | undefined
  /** `quote` to be told the price instead of making the call. */
  readonly costMode: string | undefined
  /** A quote that the call is to be charged by. */
  readonly quoteId: string | undefined
  /** The name of a header about money that is another gateway's. */
  readonly strange?: string | undefined
  readonly idempotencyKey: string | undefined
  /** The model that the path names, in protocols that have it there. */
  readonly model?: string
  /** Those of some other headers that the request has, by their names in lower case. */
  readonly headers: (names: readonly string[]) => Readonly<Record<string, string>>
  /** What is to become of a stream whose caller leaves; as its key says where left out. */
  readonly onDisconnect?: string | undefined
  /** What is held for it where it is a stream; as its key says where left out. */
  readonly hold?: string | undefined
  /** What is to become of it where its output limit does not fit into what there is; it is refused where left out. */
  readonly fit?: string | undefined
  /** For whom it is made, by a header; beats what the body says. */
  readonly endUser?: string | undefined
  /** What it is for, by a header: `team=search,run=42`. */
  readonly tags?: string | undefined
  /** The most output that it may have of each choice, because more did not fit. */
  readonly outputAtMost?: number | undefined
  /** Has it told when the caller leaves before it is answered, at once where it has left. Call off what comes back. */
  readonly whenLeft?: ((work: () => void) => () => void) | undefined
  /** What the request holds of the process's memory, with room for its reply once that is reserved. */
  readonly memory: Lease
  /** The body that a fault has in the caller's protocol, for one that comes when the answer has begun. */
  readonly renderFault: (fault: Fault) => string
}

export type Pipeline = (request: CallRequest) => Promise<RelayedAnswer>

type Parts = {
  /** Reads what is asked for, and works out how it would run. */
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
  readonly relay: Relay
  readonly records: Records
  /** What became of the first call with an idempotency key, as the caller of the second is told. */
  readonly firstCall: FirstCall
  /** What access tokens may spend without their person being asked. */
  readonly mandates: Mandates
  /** Somebody has to hear of it: the upstream used more than was held, or what nobody can be charged for. */
  readonly overran: (overrun: Overrun) => void
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly headerNames: HeaderNames
}

/** The path of every call. Each line can refuse; a refusal leaves nothing behind. */
export function createPipeline(parts: Parts): Pipeline {
  const {
    plan: planFor,
    requireUnspent,
    attribute,
    ceilingsFor,
    quotedAdmission,
    begin,
    end,
    quotes,
    growth: createGrowth,
    relay,
    records,
    firstCall,
    mandates,
    overran,
    clock,
    headerNames,
  } = parts

  // A key is asked for no mandate, and pays nothing for it.
  return (request) => (request.caller.token === null ? run(request) : runWithin(request))

  /** Tells what is refused with where the person who gave the mandate can do something about it. */
  async function runWithin(request: CallRequest): Promise<RelayedAnswer> {
    try {
      return await run(request)
    } catch (thrown) {
      throw thrown instanceof Fault ? mandates.linked(request.caller, thrown) : thrown
    }
  }

  /** Who wants a call that fits has it made with what there is, where it is refused for its output limit. */
  async function run(asked: CallRequest): Promise<RelayedAnswer> {
    if (asked.fit === undefined) return runOnce(asked)
    let request = asked
    let refusedFirst: unknown
    for (let tries = 1; ; tries += 1) {
      const progress = { reserved: false, begun: false }
      try {
        return await runOnce(request, progress)
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

  async function runOnce(request: CallRequest, progress: Progress = {}): Promise<RelayedAnswer> {
    const { id, caller, operation } = request
    const times = startStopwatch(clock)
    // What its key may not use counts as nothing, so that nothing is worked out for it.
    requireScope(caller, operation)
    requireUnspent(request)
    const ready = await price(request)
    if (request.costMode !== undefined) return quote(request, ready)

    const { plan, held, first, claims, approval, attribution, ceilings } = ready
    // Before anything is held: what a call may need to come to its end is there when it begins.
    const isReserved = request.memory.reserveReply(plan.replyBytes, plan.replyMostBytes)
    if (isReserved !== true && !(await isReserved)) throw noRoom()
    progress.reserved = true
    if (approval !== undefined) await mandates.take(approval, request, held.most)
    const { rates } = await begin({
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
    const sent = await plan.send(id, request.memory, growth)
    times.note('answered')
    const told = rateHeaders(rates)
    Object.assign(told, plan.headers)
    told[headerNames.priceVersion] = held.terms.version
    const heldNow = () => growth?.held() ?? held
    const running = { request, plan, held, sent, times }
    if (sent.outcome === 'streaming') {
      // The body takes the call with it: it ends when the body has, not when this function returns.
      const relayed = relay({
        ...sent,
        held: heldNow,
        growth,
        endedByHeader: headerNames.endedBy,
        room: request.memory,
        began: () => times.note('firstByte'),
        settle: (outcome, told, isHeard) => settle(running, outcome, told, isHeard),
        renderFault: request.renderFault,
      })
      if (growth !== undefined) Object.assign(told, { [headerNames.hold]: 'growing', trailer: headerNames.endedBy })
      return { ...relayed, headers: { ...relayed.headers, ...told, ...STREAMED } }
    }
    if (growth !== undefined) await coverWhole(growth, plan, sent)

    request.memory.shrinkReply(sent.outcome === 'answered' ? sent.reply.body.length : 0)
    const handedOver = await plan.task?.handOver(id, sent)
    if (handedOver !== undefined) {
      times.note('firstByte')
      // Whoever ends it adds what it cost, and why.
      records.add(id, runOf({ plan, sent, status: handedOver.status, times }))
      // What it cost is told where its end is.
      told[headerNames.held] = formatUsd(held.most)
      return { ...handedOver, headers: { ...handedOver.headers, ...told } }
    }

    const outcome = await judge(plan, heldNow(), sent)
    const { status } = outcome.answer ?? outcome.fault
    const {
      charged,
      free,
      rates: left,
    } = await settle(running, outcome, status, !('owed' in sent)).catch((error: unknown) => {
      throw withHeaders(asFault(error), told)
    })
    if (approval !== undefined && charged === ZERO && wasUnasked(sent)) await mandates.giveBack(approval, id)
    // What was reserved and not used is there again.
    if (left !== null) Object.assign(told, rateHeaders(left))
    told[headerNames.cost] = formatUsd(charged)
    if (seesBalance(request.caller)) told[headerNames.balance] = formatUsd(free)
    if (outcome.answer === undefined) throw withHeaders(outcome.fault, told)
    const costed = sent.outcome === 'answered' && plan.withCost?.(sent.reply, outcome.answer, formatUsd(charged))
    const { body, headers } = costed || outcome.answer
    // Clients repeat some errors by themselves: they would pay again for one that was charged, or do a thing twice for a user.
    if (status >= 400 && (charged !== ZERO || mayHaveActed(operation, status))) told['x-should-retry'] = 'false'
    return { status, headers: { ...headers, ...told }, body }
  }

  /** Reads what is asked for, and what it costs at the most. Nothing has been held or counted yet. */
  async function price(request: CallRequest): Promise<Ready> {
    const { operation, caller, maxCost, costMode, quoteId, idempotencyKey } = request
    let quoteClaim: Claim | undefined
    try {
      requireOwnWord(request.strange, headerNames)
      requireMode(request, headerNames)
      requireWord('disconnects', request.onDisconnect, ON_DISCONNECT)
      requireWord('what does not fit', request.fit, FITS)
      requireWord('holds', request.hold, HOLDINGS)
      // Worked out only where something hangs on it.
      const digest = (costMode ?? quoteId ?? idempotencyKey) === undefined ? '' : digestOf(request)
      const claims = idempotencyClaim(idempotencyKey, operation, digest)
      const quoted = quoteId === undefined ? undefined : quotes.redeem(quoteId, { caller, operation, digest })
      quoteClaim = quoted?.claim
      const plan = await planFor(request)
      // Before it is told anything about the call, also in a quote.
      requireModelScope(caller, operation, plan.model)
      const attributed = attribute(request, plan)
      const attribution = attributed instanceof Promise ? await attributed : attributed
      const found = ceilingsFor(caller, attribution)
      const ceilings = found instanceof Promise ? await found : found
      const { terms, most } = plan
      const held = quoted?.held(terms) ?? { terms, mostCounts: most, most: mostFor(terms, most) }
      // Of a quote, whose request is fixed, nothing can be lowered.
      const moneyAdvice = quoted === undefined ? plan.moneyAdvice : undefined
      requireWithinCap(held.most, maxCost, moneyAdvice)
      const grows = quoted === undefined && wantsGrowth(request) ? plan.growth : undefined
      const slice = firstSlice(grows)
      const first: Ready['first'] = slice === undefined ? { held, tokens: plan.tokens } : { ...slice, grows }
      // A quote says what it would cost, whoever could make the call.
      if (costMode === undefined) {
        requireBudget(caller, first.held.most)
        requireWithinTokenLimits(plan, windowsOf(request), caller.limits, first.tokens)
      }
      // Last of all: a person is asked for no call that would be refused for what it is.
      const isAsked = costMode === undefined && caller.token !== null
      const approval = isAsked ? await mandates.require(request, held.most) : undefined
      const single = [quoteClaim, approval].filter((claim) => claim !== undefined)
      return {
        plan,
        digest,
        held,
        // What somebody was asked for is all of it.
        first: approval === undefined ? first : { held, tokens: plan.tokens },
        approval,
        attribution,
        ceilings,
        moneyAdvice: first.grows?.moneyAdvice ?? moneyAdvice,
        claims: single.length === 0 ? claims : [...claims, ...single],
      }
    } catch (fault) {
      return await refuseCounted(request, fault, quoteClaim)
    }
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

  /** Ends the call, and keeps what is known of it. */
  async function settle(
    { request, plan, held, sent, times }: Running,
    outcome: Settled,
    status: number,
    isHeard = true,
  ): Promise<Settlement> {
    const { id, caller, operation } = request
    const task = plan.task && notCreated(outcome)
    const { loss, ...judged } = outcome.ending
    const ending = {
      id,
      accountId: caller.accountId,
      ...judged,
      usage: plan.isFree ? uncounted(judged.usage) : judged.usage,
      route: lastSlotOf(sent),
      // The headers of a stream have left long before its end.
      ...(sent.outcome !== 'streaming' && {
        asked: { credentialId: caller.credentialId, windows: windowsOf(request) },
      }),
      ...(task && { task }),
      ...(loss && { loss: { ...loss, route: routeOf(plan, sent, caller) } }),
    }
    const settlement = await end(ending)
    times.note('settled')
    if (settlement.overrun > ZERO) overran({ id, operation: operation.id, amount: settlement.overrun, loss })
    // What goes to the caller only now, a whole answer or the end of a stream that had nothing before it, goes in this turn.
    if (isHeard) times.noteAs('firstByte', 'settled')
    records.add(id, { ...runOf({ plan, sent, status, times }), ...priceOf(held.terms, outcome) })
    return settlement
  }

  /** A key, a quote or an approval that another call has is told by what became of that one. */
  async function explain(request: CallRequest, refusal: unknown, most = ZERO): Promise<never> {
    if (!(refusal instanceof ClaimTaken)) throw refusal
    const { claim, holder, differs, headers } = refusal
    const { credentialId } = request.caller
    if (isOfApproval(refusal)) throw withHeaders(await mandates.spent(request, most), headers)
    if (claim.scope !== IDEMPOTENCY) throw new Fault('quote_used', { headers })
    if (differs) throw new Fault('idempotency_mismatch', { headers, members: { first_request_id: holder } })
    const fault =
      holder === null
        ? new Fault('idempotency_running')
        : await firstCall(credentialId, { id: holder, isTask: isTask(request.operation) })
    throw withHeaders(fault, headers)
  }

  /**
   * A request that is wrong counts as a request. One that repeats a call by its key is told what became of that, even where
   * its quote has expired or its price has risen since.
   */
  async function refuseCounted(request: CallRequest, thrown: unknown, quoteClaim?: Claim): Promise<never> {
    const { id, caller, operation, idempotencyKey } = request
    const byKey = isKey(idempotencyKey) ? idempotencyClaim(idempotencyKey, operation, digestOf(request)) : []
    // No person is asked for a call that was made already.
    const claims = thrown instanceof NotAsked && quoteClaim !== undefined ? [...byKey, quoteClaim] : byKey
    const { rates } = await begin({ id, caller, operation, hold: null, tokens: 0, claims }).catch((refusal: unknown) =>
      explain(request, refusal),
    )
    throw withHeaders(thrown instanceof NotAsked ? await thrown.ask() : asFault(thrown), rateHeaders(rates))
  }
}

/** Nobody on the way may keep an answer back, or keep it at all. */
const STREAMED = { 'cache-control': 'no-store', 'x-accel-buffering': 'no' }

/** How far a call has come. */
type Progress = { reserved?: boolean; begun?: boolean }

/** What is known of a call before it begins. */
type Ready = {
  readonly plan: Plan
  /** The most that it can cost. */
  readonly held: Held
  /** What it begins with, and how that grows where it is not all. */
  readonly first: Slice & { readonly grows?: GrowthPlan | undefined }
  readonly digest: string
  readonly claims: readonly Claim[]
  readonly moneyAdvice: Plan['moneyAdvice']
  /** Of a call that its person has allowed, among its claims. */
  readonly approval: Claim | undefined
  readonly attribution: Attribution | undefined
  /** What it is held against beside the balance. */
  readonly ceilings: readonly Ceiling[]
}

/** A call that was begun. */
type Running = {
  readonly request: CallRequest
  readonly plan: Plan
  readonly held: Held
  readonly sent: Sent
  readonly times: Stopwatch
}

/** Whether another call has the approval that this one wanted to begin with. */
function isOfApproval(refusal: unknown): boolean {
  return refusal instanceof ClaimTaken && refusal.claim.scope === APPROVAL
}

/** Whether no upstream can have heard of it. */
function wasUnasked({ attempts }: Sent): boolean {
  return attempts.every(({ outcome }) => outcome === 'not_sent')
}

type Settled = Pick<Outcome, 'ending' | 'measured' | 'fault'>

/** Where the call went: the last that was asked decided. */
function lastSlotOf({ attempts }: Sent): string | undefined {
  return attempts.at(-1)?.slot
}

function routeOf({ sold }: Plan, sent: Sent, { mode }: Caller): string {
  return lossRoute(sold, { slot: lastSlotOf(sent) ?? 'none', mode })
}

/** The limits that the call was admitted within. */
function windowsOf({ caller, operation }: CallRequest): readonly Window[] {
  return askOf(caller.limits, operation.limits).windows
}

/** The ledger has a row of what is free, and the report counts what can be billed. */
function uncounted({ failed, upstreamCost }: Usage): Usage {
  return { ...NO_USAGE, failed, upstreamCost }
}

/** The end of a task that no upstream took. */
function notCreated({ fault }: Settled): TaskEnd {
  const { code, message } = fault ?? { code: 'upstream_refused', message: 'The upstream did not take it.' }
  return { state: 'FAILED', code, message }
}

/** What was done for a user may have been done although its upstream says that it failed, and no key keeps it from being done again. */
function mayHaveActed(operation: Operation, status: number): boolean {
  return isSoldByUnit(operation) && operation.actsFor !== undefined && (status === 408 || status >= 500)
}

/** A free quote must never turn into a paid call. */
function requireMode({ costMode, quoteId, operation }: CallRequest, headerNames: HeaderNames): void {
  if (costMode === undefined) return
  if (costMode !== 'quote')
    throw new Fault('invalid_request', {
      detail: 'The cost mode must be "quote". Correct the header, or leave it out.',
    })
  if (!operation.quotable) throw noQuotes(headerNames)
  if (quoteId !== undefined)
    throw new Fault('invalid_request', {
      detail: 'A request can ask for a quote or use one, not both. Send one of the two headers.',
    })
}

/** An upstream that was asked for a stream and answers whole has made all of it: that is held for now, as far as there is money. */
async function coverWhole(growth: Growth, plan: Plan, sent: Exclude<Sent, { outcome: 'streaming' }>): Promise<void> {
  await growth.end()
  if (sent.outcome !== 'answered') return
  try {
    const measured = await plan.measure(sent.reply)
    await growth.cover(measured?.outputTokens ?? 0)
  } catch {
    // What can't be read is judged below.
  }
}

/** Who wants a limit that fits wants an answer that is not cut. */
function wantsGrowth({ hold, fit, caller }: CallRequest): boolean {
  return fit === undefined && (hold ?? caller.holding) === 'growing'
}

function requireWithinCap(most: Nanos, maxCost: string | undefined, advice: Plan['moneyAdvice']): void {
  if (maxCost === undefined) return
  const cap = capOf(maxCost)
  if (most > cap) throw capPassed({ needed: most, left: cap, advice })
}

function capOf(text: string): Nanos {
  try {
    const cap = usd(text)
    if (cap >= ZERO) return cap
  } catch {
    // Told below, as for a negative amount.
  }
  throw new Fault('invalid_request', { detail: 'The cost cap must be a decimal amount of USD, such as 0.01.' })
}

function withHeaders(fault: Fault, headers: Readonly<Record<string, string>>): Fault {
  return fault.with({ headers: { ...fault.headers, ...headers } })
}
