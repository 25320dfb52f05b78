import type { Budget } from '../identity/budgets.ts'
import { formatUsd, usd } from '../kernel/money.ts'
import { PERIODS } from '../kernel/period.ts'

/** How operators write a budget, and are shown one. */

const BUDGET = /^([\d.]+)\/([a-z]+)$/

export function budgetOf(text: string): Budget {
  const [, amount, word] = BUDGET.exec(text) ?? []
  const period = PERIODS.find((one) => one === word)
  if (amount === undefined || period === undefined)
    throw new Error(`${JSON.stringify(text)} is not a budget: use 20/month, 10/week, 5/day or 100/total`)
  return { period, amount: usd(amount) }
}

export function budgetLine({ amount, period }: Budget): string {
  return `${formatUsd(amount)} USD ${period === 'total' ? 'in total' : `per ${period}`}`
}
