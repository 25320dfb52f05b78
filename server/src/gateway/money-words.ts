import type { Caller } from '../identity/caller.ts'
import { Fault, type FaultCode } from '../kernel/fault.ts'
import { formatUsd, type Nanos, shortUsd } from '../kernel/money.ts'
import type { MoneyAdvice } from './money-advice.ts'

/** What a caller reads whose money does not cover the most that a call can cost: the amounts, what would fit, and what to do. */

export type Short = {
  readonly needed: Nanos
  /** Null where the caller is not told what the account has. */
  readonly left: Nanos | null
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

type OfBudget = Short & { readonly budget: Caller['budget']; readonly nowMs: number }

export function budgetShort({ budget, nowMs, ...short }: OfBudget, headers: Fault['headers']): Fault {
  const { needed } = short
  if (budget === null) return shortFault('budget_exceeded', short, { headers })
  const { period, amount } = budget
  return shortFault('budget_exceeded', short, {
    headers,
    amounts: amountsOf(short, ` of ${shortUsd(amount)} USD ${period === 'total' ? 'in total' : `per ${period}`}`),
    remedy: remedyOf(period, needed > amount, nowMs),
    members: { budget_period: period, ...moneyMembers(short) },
  })
}

/** Waiting helps where the next period begins with enough. */
function remedyOf(period: NonNullable<Caller['budget']>['period'], isBeyond: boolean, nowMs: number): string {
  if (period === 'total') return 'The budget is a total: waiting does not restore it.'
  if (isBeyond) return `This call alone exceeds the budget of a ${period}.`
  return `The next ${period} begins at ${nextPeriod(period, nowMs)}.`
}

/** By PostgreSQL's rule: days and months in UTC. */
function nextPeriod(period: 'day' | 'month', nowMs: number): string {
  const now = new Date(nowMs)
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()]
  const next = period === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1, 1)
  return `${new Date(next).toISOString().slice(0, 10)} 00:00 UTC`
}

type Words = {
  readonly headers?: Fault['headers']
  readonly amounts?: string
  readonly remedy?: string
  readonly members?: Readonly<Record<string, string>>
}

function shortFault(code: FaultCode, short: Short, words: Words): Fault {
  const { headers = {}, amounts = amountsOf(short), remedy, members = moneyMembers(short) } = words
  const advice = short.advice?.(short.left)
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
