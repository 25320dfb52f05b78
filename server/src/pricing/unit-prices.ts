import { z } from 'zod'
import { NANOS_PER_USD, perMillion, type UnitPrice } from '../kernel/money.ts'
import { decimal, multiply, rational } from '../kernel/rational.ts'

/** Prices as they are written: plain decimals in USD. */

/** A price as PostgreSQL writes it. Its numbers can be more than we can read: NaN is one. */
export function readable(read: (text: string) => UnitPrice) {
  return z.string().transform((text, context): UnitPrice => {
    try {
      return read(text)
    } catch (error) {
      context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : 'is no price' })
      return z.NEVER
    }
  })
}

/** Reads USD for a million tokens. */
export function priceIn(text: string): UnitPrice {
  return notNegative(perMillion(text))
}

/** Reads USD for a picture. */
export function picturePriceIn(text: string): UnitPrice {
  return notNegative(multiply(decimal(text), rational(NANOS_PER_USD)))
}

/** Reads USD for a second of video, as the price of a millisecond. */
export function videoPriceIn(text: string): UnitPrice {
  return multiply(picturePriceIn(text), rational(1n, 1_000n))
}

/** Reads USD for a unit of an operation. */
export const unitPriceIn = picturePriceIn

/** Reads USD for a call of a tool. */
export const callPriceIn = picturePriceIn

/** Reads how many times another price something costs. */
export function timesIn(text: string): UnitPrice {
  return notNegative(decimal(text))
}

function notNegative(price: UnitPrice): UnitPrice {
  if (price.numerator < 0n) throw new RangeError('a price is not negative')
  return price
}
