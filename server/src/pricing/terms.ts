import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import { bound, charge, type Nanos, type UnitPrice } from '../kernel/money.ts'
import { type Rational, rational } from '../kernel/rational.ts'

/**
 * The prices of a call as they were when it began. Settlement reads nothing else, so that a price that changes meanwhile
 * changes nothing for it.
 */
export type Terms = {
  /** `0` for the published default; then the number of the operator's price; `account` for one of the account's own. */
  readonly version: string
  /** One for most operations; a model has one for each class of tokens. */
  readonly rates: readonly UnitRate[]
}

/** What a unit costs. */
export type UnitRate = {
  readonly unit: string
  readonly price: UnitPrice
  readonly published: UnitPrice
  readonly providerCost: UnitPrice | null
}

/** The version of a price that somebody pays a multiple of: the account's own, unless that is once, or nothing because it is free. */
export function versionAt(version: string, { numerator, denominator }: Rational): string {
  return numerator === denominator || numerator === 0n ? version : OWN_VERSION
}

export const OWN_VERSION = 'account'

/** How many of each unit, in the order of the rates. */
export type Counts = readonly bigint[]

/** The prices of one kind over a denominator that they share, so that to add up is to add whole numbers. */
type Column = { readonly numerators: readonly bigint[]; readonly denominator: bigint }

/** What follows from the terms alone. Calls of a model have the same ones until its price changes. */
type Derived = {
  readonly price: Column
  readonly listed: Column
  readonly provider: Column
  /** The text of each rate up to the count that is held for. */
  readonly texts: readonly string[]
}

const derived = new WeakMap<Terms, Derived>()

function derivedOf(terms: Terms): Derived {
  const known = derived.get(terms)
  if (known !== undefined) return known
  const { rates } = terms
  const made = {
    price: columnOf(rates.map(({ price }) => price)),
    listed: columnOf(rates.map(({ published }) => published)),
    provider: columnOf(rates.map(({ providerCost }) => providerCost ?? NOTHING)),
    texts: rates.map(rateAsText),
  }
  derived.set(terms, made)
  return made
}

const NOTHING = rational(0n)

function columnOf(prices: readonly UnitPrice[]): Column {
  const denominator = prices.reduce((shared, price) => leastCommonMultiple(shared, price.denominator), 1n)
  const numerators = prices.map((price) => price.numerator * (denominator / price.denominator))
  return { numerators, denominator }
}

function leastCommonMultiple(a: bigint, b: bigint): bigint {
  let [divisor, rest] = [a, b]
  while (rest !== 0n) [divisor, rest] = [rest, divisor % rest]
  return (a / divisor) * b
}

function sum({ numerators, denominator }: Column, counts: Counts): Rational {
  let total = 0n
  for (let at = 0; at < numerators.length; at += 1) total += (numerators[at] ?? 0n) * (counts[at] ?? 0n)
  return { numerator: total, denominator }
}

/** What is held: no charge for so many units exceeds it. */
export function mostFor(terms: Terms, counts: Counts): Nanos {
  try {
    // They are written beside the charge, and have to fit there too.
    const { listed, provider, price } = derivedOf(terms)
    for (const column of [listed, provider]) bound(sum(column, counts))
    return bound(sum(price, counts))
  } catch (cause) {
    // More than the ledger can hold is no price that anybody means.
    throw new Fault('invalid_billing_configuration', { cause })
  }
}

/** What so many units cost, before anything is rounded. */
export function exactCost(terms: Terms, counts: Counts): Rational {
  return sum(derivedOf(terms).price, counts)
}

/** What is charged: rounded once, whatever it is the sum of. */
export function costOf(terms: Terms, counts: Counts): Nanos {
  return charge(exactCost(terms, counts))
}

export function listValueOf(terms: Terms, counts: Counts): Nanos {
  return charge(sum(derivedOf(terms).listed, counts))
}

export function upstreamCostOf(terms: Terms, counts: Counts): Nanos {
  return charge(sum(derivedOf(terms).provider, counts))
}

/** As JSON that is kept with the hold, for whoever has to settle it without us. */
export function termsAsText(terms: Terms, most: Counts): string {
  const rates = derivedOf(terms).texts.map((text, at) => `${text}"${most[at] ?? 0n}"}`)
  return `{"version":${JSON.stringify(terms.version)},"rates":[${rates.join(',')}]}`
}

/** Without its end, which is how many are held for. */
function rateAsText({ unit, price, published, providerCost }: UnitRate): string {
  const cost = providerCost === null ? {} : { cost: fraction(providerCost) }
  const known = JSON.stringify({ unit, price: fraction(price), published: fraction(published), ...cost })
  return `${known.slice(0, -1)},"most":`
}

/** As many digits each of the two numbers of a fraction has at the most, or nobody could read it again. */
export const FRACTION_DIGITS = 60

const fractionText = z
  .string()
  .regex(new RegExp(`^\\d{1,${FRACTION_DIGITS}}/[1-9]\\d{0,${FRACTION_DIGITS}}$`))
  .transform((text) => {
    const [numerator = '0', denominator = '1'] = text.split('/')
    return rational(BigInt(numerator), BigInt(denominator))
  })

const termsJson = z.object({
  version: z.string(),
  rates: z.array(
    z.object({
      unit: z.string(),
      price: fractionText,
      published: fractionText,
      cost: fractionText.nullable().default(null),
      most: z.string().transform(BigInt),
    }),
  ),
})

/** What was kept with a hold, for whoever settles it. */
export function termsInText(text: string): { readonly terms: Terms; readonly most: Counts } {
  const { version, rates } = termsJson.parse(JSON.parse(text))
  return {
    terms: { version, rates: rates.map(({ cost, most: _, ...rate }) => ({ ...rate, providerCost: cost })) },
    most: rates.map(({ most }) => most),
  }
}

export const fraction = ({ numerator, denominator }: UnitPrice) => `${numerator}/${denominator}`

/** What a call is held for, and at which prices. */
export type Held = { readonly terms: Terms; readonly mostCounts: Counts; readonly most: Nanos }
