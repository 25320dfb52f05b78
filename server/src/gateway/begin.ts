import type { Ceiling } from '../budgets/account-budgets.ts'
import type { Attribution, Call, Claim, Hold, Judgement, NewTask, Refused } from '../calls/call.ts'
import type { Calls } from '../calls/calls.ts'
import { type Caller, ownAllowanceOf } from '../identity/caller.ts'
import type { Sought } from '../identity/scopes.ts'
import type { Clock } from '../kernel/clock.ts'
import { asUnavailable, Fault, wrongCredential } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { nanos, ZERO } from '../kernel/money.ts'
import type { TestCredit } from '../ledger/test-credit.ts'
import { askOf } from '../limits/ask.ts'
import { rateHeaders } from '../limits/headers.ts'
import type { Spent, SpentWindows } from '../limits/spent-windows.ts'
import { whoseIs } from '../limits/whose.ts'
import type { Rate, Rates, Window } from '../limits/window.ts'
import { placesTaken, requestsUsed, tokensUsed } from '../wording/limit-words.ts'
import type { MoneyAdvice } from '../wording/money-advice.ts'
import { balanceShort, budgetShort } from '../wording/money-words.ts'
import { type FittingOutput, fittingMembers } from '../wording/token-advice.ts'
import { requireBudget } from './require-budget.ts'
import { requireOwnScope, requireScope, seesBalance } from './require-scope.ts'

/** What somebody wants to begin: an operation with what it may cost, or an admission that costs nothing. */
export type Wish = {
  readonly id: Id
  readonly caller: Caller
  readonly operation: Sought & {
    /** Whether every key may use it, whatever its scopes: what concerns the key itself. */
    readonly isForAll?: boolean
  }
  readonly hold: Pick<Hold, 'amount' | 'terms'> | null
  /** Reserved until the call has ended, or until the window turns; 0 for what counts no tokens. */
  readonly tokens: number
  /** Beside the slots that the operation's limits ask for. */
  readonly claims: readonly Claim[]
  readonly task?: NewTask | undefined
  /** Whose spend it is. */
  readonly attribution?: Attribution | undefined
  /** What it is held against beside the balance; what all calls of the caller are where left out. */
  readonly ceilings?: readonly Ceiling[] | undefined
  /** What to do where the hold is more than there is. */
  readonly moneyAdvice?: MoneyAdvice | undefined
  /** With which output limit it would fit into so many tokens. */
  readonly fittingOutput?: FittingOutput | undefined
}

export type Admitted = Pick<Judgement, 'rates' | 'free' | 'judgedAt'>

export type Begin = (wish: Wish) => Promise<Admitted>

/** Another call has a place that this one asked for beside its limits: an idempotency key, or a quote. */
export class ClaimTaken extends Error {
  readonly claim: Claim
  readonly holder: Id | null
  /** Whether the one that has it is another request. */
  readonly differs: boolean
  readonly headers: Readonly<Record<string, string>>

  constructor(refused: Extract<Refused, { claim: Claim }>, rates: Rates) {
    super('the place is taken')
    this.claim = refused.claim
    this.holder = refused.holder
    this.differs = refused.outcome === 'claim_differs'
    this.headers = rateHeaders(rates)
  }
}

/** The workspace is suspended, closed or being closed. */
export class AccountInactive extends Fault {
  constructor(headers: Readonly<Record<string, string>>) {
    super('forbidden', {
      detail:
        'The workspace is suspended by the operator, or closed or being closed; its members see which. The operator ends a suspension; an owner can cancel the closure within its grace period.',
      headers,
    })
  }
}

type Parts = {
  readonly calls: Pick<Calls, 'begin' | 'reservedTokens'>
  readonly spent: SpentWindows
  readonly time: Pick<Clock, 'nowMs'>
  readonly testCredit: Pick<TestCredit, 'isKnownGiven' | 'refill'>
}

/** Throws where this process knows that the caller has no request left, before anything is worked out for it. */
export type RequireUnspent = (wish: Pick<Wish, 'caller' | 'operation'>) => void

export function createRequireUnspent({ spent, time }: Pick<Parts, 'spent' | 'time'>): RequireUnspent {
  return ({ caller, operation }) => {
    const known = spent.find(caller.credentialId, askOf(caller.limits, operation.limits).windows)
    if (known !== undefined) throw requestsSpent(known, caller, time.nowMs())
  }
}

const NONE: readonly Claim[] = []

/** Admits a call, claims its places and holds its money, or throws the fault that its caller is told. */
export function createBegin({ calls, spent, time, testCredit }: Parts): Begin {
  const requireUnspent = createRequireUnspent({ spent, time })
  return async (wish) => {
    const { caller, operation, hold } = wish
    // Its request may have been long on the way.
    if (hasEnded(caller, time.nowMs())) throw expired(caller)
    if (operation.isForAll === true) requireOwnScope(caller)
    else requireScope(caller, operation)
    if (hold !== null) requireBudget(caller, hold.amount)
    requireUnspent(wish)
    const { windows, slots } = askOf(caller.limits, operation.limits)
    const { ceilings = caller.ceilings } = wish
    const places = hold === null ? NONE : slots
    const call: Call = {
      id: wish.id,
      accountId: caller.accountId,
      credentialId: caller.credentialId,
      operation: operation.id,
      hold: hold && {
        amount: hold.amount,
        terms: hold.terms,
        allowances: allowancesOf(ceilings, caller),
        own: ownAllowanceOf(caller),
      },
      tokens: wish.tokens,
      windows,
      claims: wish.claims.length === 0 ? places : [...places, ...wish.claims],
      task: wish.task,
      attribution: wish.attribution,
    }
    const judgement = await judge(call, caller)
    if (judgement.outcome === 'begun') return judgement
    if (judgement.outcome === 'requests_spent') spent.note(caller.credentialId, judgement.window, judgement.rates)
    if ('claim' in judgement && wish.claims.includes(judgement.claim)) throw new ClaimTaken(judgement, judgement.rates)
    throw refusalOf(judgement, wish, { nowMs: time.nowMs(), reservedTokens: calls.reservedTokens })
  }

  /** A test call that is refused for want of money is begun again where the account is given the day's test money. */
  async function judge(call: Call, { mode }: Caller): Promise<Judgement> {
    const mayRefill = mode === 'test' && !testCredit.isKnownGiven(call.accountId)
    const judgement = await calls.begin(call)
    if (!mayRefill || judgement.outcome !== 'money_spent' || call.hold === null) return judgement
    const short = nanos(call.hold.amount - judgement.free)
    const isRefilled = await testCredit.refill(call.accountId, short).catch(asUnavailable)
    return isRefilled ? calls.begin(call) : judgement
  }
}

/** Whether its key or its grant is over by then. */
export function hasEnded({ expiresAtMs }: Pick<Caller, 'expiresAtMs'>, atMs: number): boolean {
  return expiresAtMs !== null && atMs >= expiresAtMs
}

export function expired({ token }: Pick<Caller, 'token'>): Fault {
  return wrongCredential('expired_credential', token !== null)
}

/** The caller's own list is the same from call to call, and written once. */
function allowancesOf(ceilings: readonly Ceiling[], caller: Caller): readonly Id[] {
  return ceilings === caller.ceilings ? caller.allowances : ceilings.map(({ allowanceId }) => allowanceId)
}

/** After which a place may be free again, of a call and of a task. */
const CALL_SECONDS = 1
const TASK_SECONDS = 5

/** What this process knows by itself. */
type Known = { readonly nowMs: number } & Pick<Calls, 'reservedTokens'>

/** Each reason for which PostgreSQL refuses a call, in the words of the public table. */
function refusalOf(judgement: Refused & Judgement, wish: Wish, known: Known): Fault {
  const headers = rateHeaders(judgement.rates)
  const [needed, advice] = [wish.hold?.amount ?? ZERO, wish.moneyAdvice]
  switch (judgement.outcome) {
    case 'requests_spent': {
      const { window, rates } = judgement
      const untilMs = rates.requests?.resetAtMs ?? 0
      return requestsSpent({ window, rates, untilMs }, wish.caller, known.nowMs)
    }
    case 'tokens_spent':
      return tokensSpent(judgement.window, judgement.rates, wish, known)
    case 'claim_taken':
    case 'claim_differs': {
      const { key, limit, endsWithOwner } = judgement.claim
      const retryAfterSeconds = endsWithOwner ? CALL_SECONDS : TASK_SECONDS
      const whose = whoseIs(wish.caller.limits, key, 'concurrency')
      const detail = placesTaken(whose, { limit, what: endsWithOwner ? 'calls' : 'tasks', retryAfterSeconds })
      return new Fault('rate_limit_exceeded', {
        detail,
        headers,
        retryAfterSeconds,
        members: { limited_by: whose.limitedBy },
      })
    }
    case 'allowance_spent':
      return budgetShort(
        { needed, advice, ...spentOf(judgement, wish), isToldOf: seesBalance(wish.caller), nowMs: known.nowMs },
        headers,
      )
    case 'money_spent':
      return balanceShort({ needed, left: seesBalance(wish.caller) ? judgement.free : null, advice }, headers)
    case 'account_suspended':
      return new Fault('account_suspended', { headers })
    case 'account_inactive':
      return new AccountInactive(headers)
    case 'credential_inactive':
      return wrongCredential('invalid_credential', wish.caller.token !== null)
    default:
      return new Fault('internal_error', { cause: new Error(`a call was refused as ${judgement.outcome}`) })
  }
}

/** The ceiling that refused, what is left of it, and what is left of all: a call that is to fit has to fit into the balance too. */
function spentOf(
  { allowanceId, left, free, refusing }: Extract<Judgement, { outcome: 'allowance_spent' }>,
  { caller, ceilings = caller.ceilings }: Wish,
) {
  const ceiling = ceilings.find((one) => one.allowanceId === allowanceId)
  const inTheWay = ceilings.filter((one) => refusing.includes(one.allowanceId))
  return { left, fits: free < left && seesBalance(caller) ? free : left, ceiling, inTheWay }
}

function requestsSpent({ window, rates, untilMs }: Spent, { limits }: Caller, nowMs: number): Fault {
  const { group, seconds, requestLimit: limit } = window
  const retryAfterSeconds = secondsUntil(untilMs, nowMs, window)
  const whose = whoseIs(limits, group, 'requestsPerMinute')
  return new Fault('rate_limit_exceeded', {
    detail: requestsUsed(whose, { limit, seconds, retryAfterSeconds }),
    headers: rateHeaders(rates),
    retryAfterSeconds,
    members: { limited_by: whose.limitedBy },
  })
}

/**
 * It fits when the window ends at the latest. It may fit as soon as calls end that run now, where what they have reserved is in the
 * way: of those this process knows its own, and the others' are as good as used.
 */
function tokensSpent(window: Window, rates: Rates, wish: Wish, { nowMs, reservedTokens }: Known): Fault {
  const { caller, tokens, fittingOutput } = wish
  const { seconds, group } = window
  const { limit = 0, left = 0, resetAtMs = 0 } = rates.tokens ?? {}
  const isInTheWay = tokens <= left + reservedTokens(caller.credentialId, resetAtMs)
  const retryAfterSeconds = isInTheWay ? CALL_SECONDS : secondsUntil(resetAtMs, nowMs, window)
  const whose = whoseIs(caller.limits, group, 'tokensPerMinute')
  return new Fault('rate_limit_exceeded', {
    detail: tokensUsed(whose, { limit, left, tokens, seconds, isInTheWay, retryAfterSeconds }),
    headers: rateHeaders(rates),
    retryAfterSeconds,
    members: { limited_by: whose.limitedBy, ...fittingMembers(fittingOutput?.(left)) },
  })
}

/** Until a window ends. It is never longer than the window, even if our notion of PostgreSQL's time is a little behind. */
function secondsUntil(endsAtMs: Rate['resetAtMs'], nowMs: number, { seconds }: Window): number {
  return Math.min(seconds, Math.max(1, Math.ceil((endsAtMs - nowMs) / 1_000)))
}
