import type { Ceiling } from '../budgets/account-budgets.ts'
import type { Attribution, Claim } from '../calls/call.ts'
import { HOLDINGS } from '../catalogue/holding.ts'
import { ON_DISCONNECT } from '../catalogue/on-disconnect.ts'
import { asFault, type Fault, invalidRequest } from '../kernel/fault.ts'
import { type Nanos, nanos, usd } from '../kernel/money.ts'
import { rateHeaders } from '../limits/headers.ts'
import type { Quotes } from '../pricing/quotes.ts'
import { type Held, mostFor } from '../pricing/terms.ts'
import { type HeaderNames, noQuotes, requireOwnWord } from '../wording/header-names.ts'
import { capPassed } from '../wording/money-words.ts'
import { requireWithinTokenLimits } from '../wording/token-advice.ts'
import type { Attribute } from './attribution.ts'
import type { Begin } from './begin.ts'
import { type CallRequest, windowsOf } from './call-request.ts'
import type { CeilingsFor } from './ceilings.ts'
import { FITS } from './fit.ts'
import { firstSlice, type GrowthPlan, type Slice } from './growth.ts'
import { idempotencyClaim, isKey } from './idempotency.ts'
import { type Mandates, NotAsked } from './mandates.ts'
import type { Plan } from './plan.ts'
import { digestOf } from './request-digest.ts'
import { requireBudget } from './require-budget.ts'
import { requireModelScope } from './require-scope.ts'
import { requireWord } from './require-word.ts'
import type { Explain } from './taken-claim.ts'

type Parts = {
  /** Reads what is asked for, and works out how it would run. */
  readonly plan: (request: CallRequest) => Promise<Plan>
  /** Says whose spend a call is. */
  readonly attribute: Attribute
  /** And what it is held against because of that. */
  readonly ceilingsFor: CeilingsFor
  readonly quotes: Pick<Quotes, 'redeem'>
  /** What access tokens may spend without their person being asked. */
  readonly mandates: Pick<Mandates, 'require'>
  readonly begin: Begin
  readonly explain: Explain
  readonly headerNames: HeaderNames
}

/** What is known of a call before it begins. */
export type Ready = {
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

/** Reads what is asked for, and what it costs at the most. Nothing has been held or counted yet. What is not sold is counted, and refused. */
export type Price = (request: CallRequest, unsold: Fault | undefined) => Promise<Ready>

export function createPrice(parts: Parts): Price {
  const { plan: planFor, attribute, ceilingsFor, quotes, mandates, begin, explain, headerNames } = parts
  return price

  async function price(request: CallRequest, unsold: Fault | undefined): Promise<Ready> {
    const { operation, caller, maxCost, costMode, quoteId, idempotencyKey } = request
    let quoteClaim: Claim | undefined
    try {
      if (unsold !== undefined) throw unsold
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
      if (request.progress !== undefined) request.progress.model = plan.model
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
      // What is not sold has no limits of its own any more.
      const counted = fault === unsold ? { ...request, operation: { ...operation, limits: [] } } : request
      return await refuseCounted(counted, fault, quoteClaim)
    }
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
    const fault = thrown instanceof NotAsked ? await thrown.ask() : asFault(thrown)
    throw fault.withHeaders(rateHeaders(rates))
  }
}

/** A free quote must never turn into a paid call. */
function requireMode({ costMode, quoteId, operation }: CallRequest, headerNames: HeaderNames): void {
  if (costMode === undefined) return
  if (costMode !== 'quote') throw invalidRequest('The cost mode must be "quote". Correct the header, or leave it out.')
  if (!operation.quotable) throw noQuotes(headerNames)
  if (quoteId !== undefined)
    throw invalidRequest('A request can ask for a quote or use one, not both. Send one of the two headers.')
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

const MOST_CAP = usd('1000000000')

function capOf(text: string): Nanos {
  const [, whole = '', fraction = ''] = /^(\d{1,40})(?:\.(\d{1,40}))?$/.exec(text) ?? []
  if (whole === '') throw wrongCap('must be a decimal amount of USD, such as 0.01')
  if (/[^0]/.test(fraction.slice(9))) throw wrongCap(`must have at most 9 decimals; ${text} has more`)
  const cap = BigInt(whole + fraction.slice(0, 9).padEnd(9, '0'))
  if (cap > MOST_CAP) throw wrongCap('must be at most 1000000000 USD')
  return nanos(cap)
}

function wrongCap(rule: string): Fault {
  return invalidRequest(`The cost cap ${rule}.`)
}
