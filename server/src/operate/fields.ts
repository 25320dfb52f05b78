import { z } from 'zod'
import type { Budget } from '../budgets/budgets.ts'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import { type Id, UUID } from '../kernel/ids.ts'
import { formatUsd, type Nanos, usd, ZERO } from '../kernel/money.ts'
import { PERIODS } from '../kernel/period.ts'
import { decimal, decimalText, type Rational } from '../kernel/rational.ts'
import { field } from './action.ts'

/** How operators write ids, amounts, times, budgets and reasons, and are shown them. */

export function idOf(text: string, advice = ''): Id {
  const id = text.toLowerCase()
  if (!UUID.test(id)) throw new Error(`${JSON.stringify(text)} is not an id${advice}`)
  return id
}

export const idField = (shown: string, description: string) => field(shown, description, (text) => idOf(text))

export const accountField = () =>
  field('account', 'id of the account', (text) => idOf(text, ' of an account: "farebox accounts list" lists the ids'))

export const keyField = () =>
  field('key', 'id of the key', (text) => idOf(text, ' of a key: "farebox keys list <account>" lists the ids'))

/** Lists are shown in pages of so many. */
export const LISTED = 100

export const afterField = (what: string) =>
  idField('id', `only ${what} after this one, for the next page (default: from the newest)`).optional()

export function amountOf(text: string): Nanos {
  const amount = usd(text)
  if (amount <= ZERO) throw new Error('must be more than 0 USD')
  return amount
}

/** A text that people read, of at most so many characters. */
export function textOf(text: string, most: number): string {
  const trimmed = text.trim()
  if (trimmed === '' || trimmed.length > most) throw new Error(`must have from 1 to ${most} characters`)
  return trimmed
}

export const reasonOf = (text: string) => textOf(text, 300)

export const nameOf = (text: string) => textOf(text, 200)

const NUMBER_LIMIT = 999_999_999
/** What a workspace may ask for, and so what it can be given. */
export const TOKENS_LIMIT = 1_000_000_000_000

export function wholeNumber(text: string, most = NUMBER_LIMIT): number {
  const number = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : undefined
  if (number === undefined || number > most) throw new Error(numberMessage(most))
  return number
}

export function numberMessage(most = NUMBER_LIMIT): string {
  return `must be a whole number from 1 to ${most.toLocaleString('en-US')}`
}

const TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d))?$/

/** A time as an operator writes it. JavaScript takes many a text for one, `5` among them. A day is its beginning in UTC. */
export function timeOf(text: string): Date {
  const time = new Date(TIME.test(text) ? text : Number.NaN)
  if (Number.isNaN(time.getTime()))
    throw new Error(`${JSON.stringify(text)} is not a time: use the form 2027-01-31T00:00:00Z`)
  return time
}

export function futureOf(text: string): Date {
  const time = timeOf(text)
  if (time.getTime() <= systemClock.nowMs()) throw new Error(`must be in the future: ${text} is past`)
  return time
}

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

/** Ten times is no discount and no surcharge that anybody means. */
const TIMES_MOST = 10n
const TIMES = /^(\d{1,2}(?:\.\d{1,4})?)x$/

/** How many times a price somebody pays, as an operator writes it. */
export function timesOf(text: string): Rational {
  const [, number = ''] = TIMES.exec(text) ?? []
  const times = number === '' ? undefined : decimal(number)
  if (times === undefined || times.numerator > TIMES_MOST * times.denominator)
    throw new Error(`${JSON.stringify(text)} is not a multiplier of the price: use 0x to ${TIMES_MOST}x, such as 0.8x`)
  return times
}

export function timesText(times: Rational): string {
  return `${decimalText(times)}x`
}

/** One of a few words. */
export function choiceOf<Value>(text: string, choices: Readonly<Record<string, Value>>): Value {
  const entry = Object.entries(choices).find(([word]) => word === text)
  if (entry === undefined) throw new Error(`must be one of ${Object.keys(choices).join(', ')}`)
  return entry[1]
}

/** What is told to a customer of the API is told here in the words of operators. */
export function unknown(what: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof Fault && error.code === 'resource_not_found') throw new Error(`there is no ${what}`)
    throw error
  }
}

export const NO_INPUT = z.object({})

export const NOBODY_TOLD = 'Nobody was told: letters need secrets.master_key and http.site_url.'
