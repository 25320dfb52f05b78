import type { Ceiling } from '../budgets/account-budgets.ts'
import { Fault, type FaultCode } from '../kernel/fault.ts'
import { formatUsd, type Nanos, shortUsd } from '../kernel/money.ts'
import { nextPeriodMs, type Period } from '../kernel/period.ts'
import type { MoneyAdvice } from './money-advice.ts'

/** What a caller reads whose money does not cover the most that a call can cost: the amounts, what would fit, and what to do. */

export type Short = {
  readonly needed: Nanos
  /** Null where the caller is not told what the account has. */
  readonly left: Nanos | null
  /** What a call would have to fit into, where that is less than what is left of the one that is told. */
  readonly fits?: Nanos
  readonly advice?: MoneyAdvice | undefined
}

export function balanceShort(short: Short, headers: Fault['headers']): Fault {
  return shortFault('insufficient_balance', short, { headers })
}

export function capPassed(short: Short & { readonly left: Nanos }): Fault {
  const { needed, left } = short
  return shortFault('cost_cap_exceeded', short, {
    amounts: `Hold needed: ${shortUsd(needed)} USD; your cap: ${shortUsd(left)} USD.`,
    members: { needed_usd: formatUsd(needed), cap_usd: formatUsd(left) },
  })
}

type OfBudget = Short & {
  /** The tightest of those that refuse. */
  readonly ceiling: Ceiling | undefined
  /** All that refuse. */
  readonly inTheWay: readonly Ceiling[]
  /** Whether the caller is told of budgets that it shares with others. */
  readonly isToldOf: boolean
  readonly nowMs: number
}

export function budgetShort(
  { ceiling, inTheWay, isToldOf, nowMs, ...short }: OfBudget,
  headers: Fault['headers'],
): Fault {
  if (ceiling === undefined) return shortFault('budget_exceeded', short, { headers })
  const { budget } = ceiling
  const { period, amount } = budget
  const isTold = isToldOf || isOwn(ceiling)
  const told = isTold ? short : { ...short, left: null }
  return shortFault('budget_exceeded', told, {
    headers,
    amounts: `${amountsOf(told, ` of ${shortUsd(amount)} USD ${perPeriod(period)}`)}${whoseBudget(ceiling)}`,
    remedy: remedyOf(isTold && short.needed > amount ? ceiling : undefined, inTheWay, { needed: short.needed, nowMs }),
    members: { ...ceilingMembers(ceiling, resetOfAll(inTheWay, short.needed, nowMs)), ...moneyMembers(told) },
  })
}

/** A key's own budget and a mandate are the caller's; the others it may share. */
function isOwn({ kind }: Ceiling): boolean {
  return kind === 'key' || kind === 'mandate'
}

function perPeriod(period: Period): string {
  return period === 'total' ? 'in total' : `per ${period}`
}

/** Which of several it is, in a sentence of its own; of who has one alone, nothing. */
function whoseBudget(ceiling: Ceiling): string {
  return isOwn(ceiling) ? '' : ` This is the budget of ${ceilingName(ceiling)}.`
}

export function ceilingName({ kind, subject }: Pick<Ceiling, 'kind' | 'subject'>): string {
  switch (kind) {
    case 'workspace':
      return 'the workspace'
    case 'member':
      return `member ${subject}`
    case 'tag':
      return `tag ${subject}`
    case 'end_user':
      return `end user ${JSON.stringify(subject)}`
    case 'key':
      return 'this key'
    case 'mandate':
      return 'this mandate'
  }
}

/** What programs read of the ceiling in the way. */
export function ceilingMembers(
  { kind, subject, budget: { period } }: Ceiling,
  resetsAt: string | null,
): Record<string, string> {
  return {
    budget_kind: kind,
    ...(subject !== null && { budget_subject: subject }),
    budget_period: period,
    ...(resetsAt !== null && { budget_resets_at: resetsAt }),
  }
}

/** When what is used is there again; null where waiting does not help. */
export function resetOf(period: Period, nowMs: number): string | null {
  const nextMs = nextPeriodMs(period, nowMs)
  return nextMs === null ? null : new Date(nextMs).toISOString()
}

/** When the call fits again into all that refuse it, for all that is known now: when the last of them begins anew; null where waiting does not help. */
export function resetOfAll(inTheWay: readonly Ceiling[], needed: Nanos, nowMs: number): string | null {
  const last = lastOf(inTheWay, needed, nowMs)
  return last === undefined ? null : resetOf(last, nowMs)
}

/** The period that begins anew last; undefined where one never does, or begins with less than the call needs. */
function lastOf(inTheWay: readonly Ceiling[], needed: Nanos, nowMs: number): Period | undefined {
  if (inTheWay.some(({ budget: { period, amount } }) => period === 'total' || needed > amount)) return undefined
  const startOf = (period: Period) => nextPeriodMs(period, nowMs) ?? 0
  return inTheWay.map(({ budget }) => budget.period).toSorted((one, other) => startOf(other) - startOf(one))[0]
}

/** What is to be expected of waiting. `beyond` is the ceiling that is told, where the call alone is more than its amount. */
function remedyOf(
  beyond: Ceiling | undefined,
  inTheWay: readonly Ceiling[],
  { needed, nowMs }: { readonly needed: Nanos; readonly nowMs: number },
): string {
  if (beyond !== undefined && beyond.budget.period !== 'total')
    return `This call alone exceeds the budget of a ${beyond.budget.period}.`
  const last = lastOf(inTheWay, needed, nowMs)
  const nextMs = last === undefined ? null : nextPeriodMs(last, nowMs)
  if (nextMs !== null) return `The next ${last} begins at ${new Date(nextMs).toISOString().slice(0, 10)} 00:00 UTC.`
  const isTotal = inTheWay.some(({ budget: { period } }) => period === 'total')
  if (!isTotal) return 'Waiting does not help: this call alone exceeds a budget.'
  return inTheWay.length === 1
    ? 'The budget is a total: waiting does not restore it.'
    : 'A budget in the way is a total: waiting does not restore it.'
}

type Words = {
  readonly headers?: Fault['headers']
  readonly amounts?: string
  readonly remedy?: string
  readonly members?: Readonly<Record<string, string>>
}

function shortFault(code: FaultCode, short: Short, words: Words): Fault {
  const { headers = {}, amounts = amountsOf(short), remedy, members = moneyMembers(short) } = words
  const advice = short.advice?.(short.left === null ? null : (short.fits ?? short.left))
  const detail = [amounts, advice?.words, remedy].filter((sentence) => sentence !== undefined).join(' ')
  return new Fault(code, { detail, headers, members: { ...members, ...advice?.members } })
}

function amountsOf({ needed, left }: Short, whole = ''): string {
  const isLeft = left === null ? '' : `; left: ${shortUsd(left)} USD${whole}`
  return `Hold needed: ${shortUsd(needed)} USD${isLeft}.`
}

function moneyMembers({ needed, left }: Short): Record<string, string> {
  return { needed_usd: formatUsd(needed), ...(left !== null && { left_usd: formatUsd(left) }) }
}
