import type { Claim } from '../calls/call.ts'
import type { Calls } from '../calls/calls.ts'
import type { Operation } from '../catalogue/operation.ts'
import type { Caller } from '../identity/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import { asFault, Fault, unavailable } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, type Nanos, usd, ZERO } from '../kernel/money.ts'
import { rateHeaders } from '../limits/headers.ts'
import type { Answer } from '../upstreams/adapters/adapter.ts'
import type { Bindings } from '../upstreams/bindings.ts'
import { type Begin, Taken } from './begin.ts'
import type { HeaderNames } from './header-names.ts'
import { IDEMPOTENCY, idempotencyClaim, isKey } from './idempotency.ts'
import { judge, type Priced } from './judge.ts'
import { parseInput } from './parse-input.ts'
import { mostFor, type Prices, termsAsText } from './prices.ts'
import type { Quotes } from './quotes.ts'
import { detailOf } from './record-detail.ts'
import type { Records } from './records.ts'
import { digestOf } from './request-digest.ts'
import type { Send } from './send.ts'

/** A call that somebody wants, whoever asks: an HTTP client, an agent, or a task. */
export type CallRequest = {
  readonly id: Id
  readonly caller: Caller
  readonly operation: Operation
  /** The query string without its question mark, byte for byte. */
  readonly query: string
  readonly rawBody: Buffer | null
  /** Reads the body as JSON, or throws the fault that says why it is none. */
  readonly readBody: () => unknown
  /** The most that the caller wants to pay, in decimal USD. */
  readonly maxCost: string | undefined
  /** `quote` to be told the price instead of making the call. */
  readonly costMode: string | undefined
  /** A quote that the call is to be charged by. */
  readonly quoteId: string | undefined
  readonly idempotencyKey: string | undefined
}

export type Pipeline = (request: CallRequest) => Promise<Answer>

type Parts = {
  readonly begin: Begin
  readonly end: Calls['end']
  readonly prices: Prices
  readonly quotes: Quotes
  readonly bindings: Bindings
  readonly send: Send
  readonly records: Records
  /** What became of the first call with an idempotency key, as the caller of the second is told. */
  readonly firstCall: (credentialId: Id, id: Id) => Promise<Fault>
  /** Somebody has to hear of it: the upstream used more than was held, or what nobody can be charged for. */
  readonly overran: (loss: { readonly id: Id; readonly operation: string; readonly amount: Nanos }) => void
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly headerNames: HeaderNames
}

/** The path of every call. Each line can refuse; a refusal leaves nothing behind. */
export function createPipeline(parts: Parts): Pipeline {
  const { begin, end, prices, quotes, bindings, send, records, firstCall, overran, clock, headerNames } = parts

  return async function run(request) {
    const { id, caller, operation } = request
    const times = stopwatch(clock)
    const priced = await price(request).catch((fault: unknown) => refuseCounted(request, fault))
    if (request.costMode !== undefined) return quote(request, priced)

    const { rates } = await begin({
      id,
      caller,
      operation,
      hold: { amount: priced.most, terms: termsAsText(priced.terms, priced.mostUnits) },
      tokens: tokensOf(operation, priced),
      claims: priced.claims,
    }).catch((refusal: unknown) => explain(caller, refusal))
    times.note('begun')

    // From here on the call is ours to end, whatever happens.
    const sent = await send(id, operation, priced)
    times.note('answered')
    const outcome = judge(operation, priced, sent)
    const settlement = await end({ id, accountId: caller.accountId, ...outcome.ending })
    times.note('settled')

    const headers = {
      ...rateHeaders(rates),
      [headerNames.cost]: formatUsd(settlement.charged),
      [headerNames.balance]: formatUsd(settlement.free),
      [headerNames.priceVersion]: priced.terms.version,
    }
    if (settlement.overrun > ZERO) overran({ id, operation: operation.id, amount: settlement.overrun })
    records.add(id, detailOf({ operation, terms: priced.terms, sent, outcome, timeline: times.noted }))
    if (outcome.answer === undefined) throw withHeaders(outcome.fault, headers)
    const isRepeatable = outcome.answer.status < 400 || settlement.charged === ZERO
    return {
      ...outcome.answer,
      headers: { ...outcome.answer.headers, ...headers, ...(!isRepeatable && DO_NOT_REPEAT) },
    }
  }

  /** Reads what is asked for, and what it costs at the most. Nothing has been held or counted yet. */
  async function price(request: CallRequest): Promise<Ready> {
    const { operation, caller, query, rawBody, maxCost, costMode, quoteId, idempotencyKey } = request
    requireMode(request)
    const input = parseInput(operation, request)
    // Worked out only where something hangs on it.
    const digest = (costMode ?? quoteId ?? idempotencyKey) === undefined ? '' : digestOf(request)
    const claims = idempotencyClaim(idempotencyKey, operation, digest)
    const quoted = quoteId === undefined ? undefined : quotes.redeem(quoteId, { caller, operation, digest })
    const current = await prices.termsFor(operation, caller)
    const terms = { ...current, ...quoted?.terms }
    const mostUnits = quoted?.mostUnits ?? operation.price.most(input)
    const most = quoted?.most ?? mostFor(terms, mostUnits)
    requireWithinCap(most, maxCost)
    const [binding] = await bindings.find(operation.upstream.slot, caller.mode).catch((cause: unknown) => {
      throw unavailable(cause)
    })
    if (binding === undefined) throw notConfigured()
    const asked = { input, query, rawBody }
    return { asked, digest, terms, mostUnits, most, binding, claims: quoted ? [...claims, quoted.claim] : claims }
  }

  /** Says what the call would cost. Nothing is held, charged or sent; it counts as a request. */
  async function quote({ id, caller, operation }: CallRequest, { asked, digest, terms }: Ready): Promise<Answer> {
    const { rates } = await begin({ id, caller, operation, hold: null, tokens: 0, claims: [] })
    const body = quotes.issue({ caller, operation, digest, terms }, asked.input)
    const headers = { 'content-type': 'application/json', ...rateHeaders(rates) }
    return { status: 200, headers, body: JSON.stringify(body) }
  }

  /** A key or a quote that another call has is told by what became of that one. */
  async function explain({ credentialId }: Caller, refusal: unknown): Promise<never> {
    if (!(refusal instanceof Taken)) throw refusal
    const { claim, holder, differs, headers } = refusal
    if (claim.scope !== IDEMPOTENCY) throw new Fault('quote_used', { headers })
    if (differs) throw new Fault('idempotency_mismatch', { headers, members: { first_request_id: holder } })
    const fault = holder === null ? new Fault('idempotency_running') : await firstCall(credentialId, holder)
    throw withHeaders(fault, headers)
  }

  /**
   * A request that is wrong counts as a request. One that repeats a call by its key is told what became of that, even where
   * its quote has expired or its price has risen since.
   */
  async function refuseCounted(request: CallRequest, thrown: unknown): Promise<never> {
    const { id, caller, operation, idempotencyKey } = request
    const claims = isKey(idempotencyKey) ? idempotencyClaim(idempotencyKey, operation, digestOf(request)) : []
    const { rates } = await begin({ id, caller, operation, hold: null, tokens: 0, claims }).catch((refusal: unknown) =>
      explain(caller, refusal),
    )
    throw withHeaders(asFault(thrown), rateHeaders(rates))
  }
}

/** Clients repeat some errors by themselves, and would pay again for one that was charged. */
const DO_NOT_REPEAT = { 'x-should-retry': 'false' }

/** What is known of a call before it begins. */
type Ready = Priced & { readonly digest: string; readonly claims: readonly Claim[] }

/** A free quote must never turn into a paid call. */
function requireMode({ costMode, quoteId, operation }: CallRequest): void {
  if (costMode === undefined) return
  if (costMode !== 'quote') throw new Fault('invalid_request', { detail: 'The only cost mode is "quote".' })
  if (!operation.quotable) throw new Fault('quote_not_supported')
  if (quoteId !== undefined)
    throw new Fault('invalid_request', { detail: 'Ask for a quote or use one, not both at once.' })
}

function notConfigured(): Fault {
  return new Fault('managed_upstream_transport', { detail: 'No upstream is configured for this operation.' })
}

function requireWithinCap(most: Nanos, maxCost: string | undefined): void {
  if (maxCost === undefined) return
  const cap = capOf(maxCost)
  if (most <= cap) return
  const members = { needed_usd: formatUsd(most), cap_usd: formatUsd(cap) }
  throw new Fault('cost_cap_exceeded', { members })
}

function capOf(text: string): Nanos {
  try {
    const cap = usd(text)
    if (cap >= ZERO) return cap
  } catch {
    // Told below, as for a negative amount.
  }
  throw new Fault('invalid_request', { detail: 'The cap on the cost must be a decimal amount of USD, such as 0.01.' })
}

/** Tokens are counted by estimate where the operation counts them; the settlement corrects it. */
function tokensOf({ limits, price }: Operation, { asked }: Priced): number {
  return limits.includes('tokens') ? Number(price.expected(asked.input)) : 0
}

function withHeaders(fault: Fault, headers: Readonly<Record<string, string>>): Fault {
  return fault.with({ headers: { ...fault.headers, ...headers } })
}

function stopwatch(clock: Pick<Clock, 'monotonicMs'>) {
  const startedMs = clock.monotonicMs()
  const noted: Record<string, number> = {}
  return {
    noted,
    note(what: string) {
      noted[what] = Math.round((clock.monotonicMs() - startedMs) * 1_000) / 1_000
    },
  }
}
