import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import { bound, charge, type Nanos, type UnitPrice } from '../kernel/money.ts'
import { add, multiply, type Rational, rational } from '../kernel/rational.ts'

/**
 * The prices of a call as they were when it began. Settlement reads nothing else, so that a price that changes meanwhile
 * changes nothing for it.
 */
export type Terms = {
  /** `0` for the published default; then the number of the operator's price; `account` for one of the account's own. */
  readonly version: string
  /** One for most operations; a model has one for each class of tokens. */
  readonly rates: readonly Rate[]
}

/** What a unit costs. */
export type Rate = {
  readonly unit: string
  readonly price: UnitPrice
  readonly published: UnitPrice
  readonly providerCost: UnitPrice | null
}

/** How many of each unit, in the order of the rates. */
export type Counts = readonly bigint[]

const NOTHING = rational(0n)

function sum({ rates }: Terms, counts: Counts, of: (rate: Rate) => UnitPrice | null): Rational {
  return rates.reduce((total, rate, at) => {
    const price = of(rate)
    return price === null ? total : add(total, multiply(price, rational(counts[at] ?? 0n)))
  }, NOTHING)
}

const listed = ({ published }: Rate) => published
const provider = ({ providerCost }: Rate) => providerCost

/** What is held: no charge for so many units exceeds it. */
export function mostFor(terms: Terms, counts: Counts): Nanos {
  try {
    // They are written beside the charge, and have to fit there too.
    for (const column of [listed, provider]) bound(sum(terms, counts, column))
    return bound(sum(terms, counts, ({ price }) => price))
  } catch (cause) {
    // More than the ledger can hold is no price that anybody means.
    throw new Fault('invalid_billing_configuration', { cause })
  }
}

/** What is charged: rounded once, whatever it is the sum of. */
export function costOf(terms: Terms, counts: Counts): Nanos {
  return charge(sum(terms, counts, ({ price }) => price))
}

export function listValueOf(terms: Terms, counts: Counts): Nanos {
  return charge(sum(terms, counts, listed))
}

export function upstreamCostOf(terms: Terms, counts: Counts): Nanos {
  return charge(sum(terms, counts, provider))
}

/** As text that is kept with the hold, for whoever has to settle it without us. */
export function termsAsText({ version, rates }: Terms, most: Counts): string {
  return JSON.stringify({
    version,
    rates: rates.map(({ unit, price, published, providerCost }, at) => ({
      unit,
      price: fraction(price),
      published: fraction(published),
      ...(providerCost !== null && { cost: fraction(providerCost) }),
      most: String(most[at] ?? 0n),
    })),
  })
}

const fractionText = z
  .string()
  .regex(/^\d{1,60}\/[1-9]\d{0,60}$/)
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
