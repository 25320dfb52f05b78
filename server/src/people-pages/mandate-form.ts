import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { MandateTerms } from '../grants/mandates.ts'
import { type Nanos, nanos, usd, ZERO } from '../kernel/money.ts'
import type { Form } from '../pages/form-data.ts'
import { anything } from '../pages/read-form.ts'
import { CATEGORIES, type Offer } from './offer.ts'

/** How a person fills in a mandate, on the page where they give it and on the one where they change it. */

const AMOUNT_MOST = usd('10000')
const AMOUNT_PROBLEM = 'Enter an amount in USD from 0 to 10,000, such as 1.00.'

/** An amount that somebody typed; undefined for what is none. */
export function readAmount(typed: string): Nanos | undefined {
  if (!/^\d{1,5}(\.\d{1,6})?$/.test(typed.trim())) return undefined
  const amount = usd(typed.trim())
  return amount > AMOUNT_MOST ? undefined : nanos(amount)
}

export const amountField = z.string().refine((typed) => readAmount(typed) !== undefined, AMOUNT_PROBLEM)

const RATE_MOST = 10_000
const rateField = z
  .string()
  .refine(
    (typed) => /^[1-9]\d{0,4}$/.test(typed.trim()) && Number(typed) <= RATE_MOST,
    `Enter a number from 1 to 10,000.`,
  )

/** For how long it may be allowed, in days. */
export const LASTS = { '1': 'A day', '7': '7 days', '30': '30 days', '90': '90 days', '365': 'A year' } as const
/** A mandate that stays until when it was given. */
export const AS_BEFORE = 'same'
const lasts = z.string().refine((days) => days === AS_BEFORE || Object.hasOwn(LASTS, days), 'Choose how long.')

const ONLY_CHARACTERS = 2_000

/** What nobody has filled in yet. Small, so that who allows it in a hurry allows little. */
export const DEFAULTS = { amount: '1.00', call: '0.05', rate: '30', days: '30' } as const
export const DAY_MS = 86_400_000
const TICKED = 'yes'

export type Values = Readonly<Partial<Record<string, string>>>

export const mayField = (category: string) => `may_${category}`

/** The fields of a mandate, beside those of the form that it stands in. */
export function mandateFields() {
  // A form may have been shown before a category was switched off.
  const ticks = Object.fromEntries(CATEGORIES.map((id) => [mayField(id), anything]))
  return {
    ...ticks,
    ...{ amount: amountField, call: amountField, rate: rateField, days: lasts, costly: anything },
    only: z.string().max(ONLY_CHARACTERS, `Enter at most ${ONLY_CHARACTERS} characters.`),
  }
}

/** As the page shows it first. */
export function defaultValues({ categories }: Pick<Offer, 'categories'>): Values {
  const ticks = categories.filter(({ isUsual }) => isUsual).map(({ id }) => [mayField(id), TICKED])
  return { ...DEFAULTS, ...Object.fromEntries(ticks), costly: TICKED, only: '' }
}

export function isTicked(values: Values, name: string): boolean {
  return values[name] === TICKED
}

/** As a page shows a mandate that there is. */
export function valuesOf(
  terms: Omit<MandateTerms, 'expiresAt'>,
  { categories }: Pick<Offer, 'categories'>,
  amountText: (amount: Nanos) => string,
): Values {
  const { amount, requestsPerMinute, scopes, asks } = terms
  const known = new Set(categories.map(({ id }) => id))
  const ticks = scopes.filter((scope) => known.has(scope)).map((scope) => [mayField(scope), TICKED])
  return {
    ...Object.fromEntries(ticks),
    amount: amountText(amount),
    call: amountText(asks.callLimit ?? amount),
    rate: String(requestsPerMinute),
    days: AS_BEFORE,
    ...(asks.asksHighCost && { costly: TICKED }),
    only: scopes.filter((scope) => !known.has(scope)).join(', '),
  }
}

export type ReadMandate =
  | { readonly isGood: true; readonly terms: MandateTerms }
  | { readonly isGood: false; readonly problems: Readonly<Record<string, string>> }

type Reading = { readonly offer: Offer; readonly now: Date; readonly until?: Date | null }

/** The mandate that the values of a form are; each of them has been read for itself. */
export async function mandateIn(values: Values, { offer, now, until = null }: Reading): Promise<ReadMandate> {
  const amount = readAmount(values.amount ?? '') ?? ZERO
  const callLimit = readAmount(values.call ?? '') ?? ZERO
  const named = (values.only ?? '').split(/[\s,]+/).filter((name) => name !== '')
  const ticked = offer.categories.map(({ id }) => id).filter((id) => isTicked(values, mayField(id)))
  const wanted = [...ticked, ...named]
  if (wanted.length === 0 && amount > ZERO)
    return { isGood: false, problems: { may: 'Tick what it may call, or set the amount to 0.' } }
  try {
    const scopes = wanted.length === 0 ? [] : await offer.check(wanted)
    const asks = { callLimit, asksHighCost: isTicked(values, 'costly') }
    const requestsPerMinute = Number(values.rate)
    return { isGood: true, terms: { amount, requestsPerMinute, scopes, asks, expiresAt: endOf(values, now, until) } }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return { isGood: false, problems: { only: sentence(error.message) } }
  }
}

function endOf({ days }: Values, now: Date, until: Date | null): Date {
  if (days === AS_BEFORE && until !== null) return until
  return new Date(now.getTime() + Number(days === AS_BEFORE ? DEFAULTS.days : days) * DAY_MS)
}

const SHOWN_PROBLEM = 300

/** What a command would be told, for a page. */
function sentence(message: string): string {
  const [first = ''] = message.split(' There are the categories')
  return `${first.slice(0, SHOWN_PROBLEM).replace(/[.?]?$/, '.')} Enter ids of operations, or model: and the name of a model.`
}

export const SEEN = 'seen'

/**
 * By which a decision is known to be about the sentence that this browser was shown: a form that was changed since then, by whomever, is
 * shown again with its new sentence.
 */
export function sealOf(browser: string, shown: readonly unknown[]): string {
  return createHmac('sha256', browser)
    .update(`mandate ${JSON.stringify(shown, plain)}`)
    .digest('base64url')
}

export function isSeen(form: Form, seal: string): boolean {
  const [given, expected] = [Buffer.from(form.get(SEEN) ?? ''), Buffer.from(seal)]
  return given.length === expected.length && timingSafeEqual(given, expected)
}

function plain(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

/** What of it a sentence says. The end is meant by the choice, not by the moment at which it was made. */
export function saidOf(
  { amount, requestsPerMinute, scopes, asks }: MandateTerms,
  { days }: Values,
): readonly unknown[] {
  return [amount, requestsPerMinute, scopes, asks.callLimit, asks.asksHighCost, days]
}
