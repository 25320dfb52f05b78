import type { Calls } from '../calls/calls.ts'
import type { Operation } from '../catalogue/operation.ts'
import type { Caller } from '../identity/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import { asFault, Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, type Nanos, usd, ZERO } from '../kernel/money.ts'
import { rateHeaders } from '../limits/headers.ts'
import type { Answer } from '../upstreams/adapters/adapter.ts'
import type { Bindings } from '../upstreams/bindings.ts'
import type { Begin } from './begin.ts'
import type { HeaderNames } from './header-names.ts'
import { judge, type Priced } from './judge.ts'
import { parseInput } from './parse-input.ts'
import { mostFor, type Prices, termsAsText } from './prices.ts'
import { detailOf } from './record-detail.ts'
import type { Records } from './records.ts'
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
  readonly costMode: string | undefined
}

export type Pipeline = (request: CallRequest) => Promise<Answer>

type Parts = {
  readonly begin: Begin
  readonly end: Calls['end']
  readonly prices: Prices
  readonly bindings: Bindings
  readonly send: Send
  readonly records: Records
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly headerNames: HeaderNames
}

/** The path of every call. Each line can refuse; a refusal leaves nothing behind. */
export function createPipeline(parts: Parts): Pipeline {
  const { begin, end, prices, bindings, send, records, clock, headerNames } = parts

  return async function run(request) {
    const { id, caller, operation } = request
    const times = stopwatch(clock)
    const priced = await price(request).catch((fault: unknown) => refuseCounted(request, fault))
    const { rates } = await begin({
      id,
      caller,
      operation,
      hold: { amount: priced.most, terms: termsAsText(priced.terms, priced.mostUnits) },
      tokens: tokensOf(operation, priced),
      claims: [],
    })
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
    records.add(id, detailOf({ operation, terms: priced.terms, sent, outcome, timeline: times.noted }))
    if (outcome.answer === undefined) throw withHeaders(outcome.fault, headers)
    return { ...outcome.answer, headers: { ...outcome.answer.headers, ...headers } }
  }

  /** Reads what is asked for, and what it costs at the most. Nothing has been held or counted yet. */
  async function price(request: CallRequest): Promise<Priced> {
    const { operation, caller, query, rawBody, maxCost, costMode } = request
    // A free quote must never turn into a paid call.
    if (costMode !== undefined) throw new Fault('quote_not_supported')
    const input = parseInput(operation, request)
    const terms = await prices.termsFor(operation, caller)
    const mostUnits = operation.price.most(input)
    const most = mostFor(terms, mostUnits)
    requireWithinCap(most, maxCost)
    const [binding] = await bindings.find(operation.upstream.slot, caller.mode).catch(unavailable)
    if (binding === undefined) throw notConfigured()
    return { asked: { input, query, rawBody }, terms, mostUnits, most, binding }
  }

  /** A request that is wrong counts as a request. */
  async function refuseCounted({ id, caller, operation }: CallRequest, thrown: unknown): Promise<never> {
    const { rates } = await begin({ id, caller, operation, hold: null, tokens: 0, claims: [] })
    throw withHeaders(asFault(thrown), rateHeaders(rates))
  }
}

function unavailable(cause: unknown): never {
  throw new Fault('billing_dependency_timeout', { cause, retryAfterSeconds: 1 })
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
