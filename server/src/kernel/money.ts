import { ceiling, decimal, floor, multiply, type Rational, rational, roundHalfEven } from './rational.ts'

declare const nanosBrand: unique symbol

/** An amount of money in nano-USD: 1 USD is 1,000,000,000. No `number` ever holds an amount. */
export type Nanos = bigint & { readonly [nanosBrand]: true }

export const NANOS_PER_USD = 1_000_000_000n
export const NANOS_PER_MICRO = 1_000n

/** What a PostgreSQL `bigint` can hold. An amount beyond it is a defect or an attack, never a price. */
export const NANOS_LIMIT = 2n ** 63n - 1n

export function nanos(amount: bigint): Nanos {
  if (amount > NANOS_LIMIT || amount < -NANOS_LIMIT) throw new RangeError('amount of money out of range')
  return amount as Nanos
}

export const ZERO = nanos(0n)

/** As much of a sum or of somebody's claim as can be written down: beyond that it makes no difference. */
export function capped(amount: bigint): Nanos {
  return nanos(amount > NANOS_LIMIT ? NANOS_LIMIT : amount)
}

/** Parses decimal USD such as `0.00145`. More than nine places would lose money silently, and is refused. */
export function usd(text: string): Nanos {
  const exact = multiply(decimal(text), rational(NANOS_PER_USD))
  const whole = floor(exact)
  if (whole * exact.denominator !== exact.numerator) {
    throw new RangeError(`finer than a nano-USD: ${JSON.stringify(text)}; give at most nine decimal places`)
  }
  return nanos(whole)
}

/** Exact decimal USD with nine places, as headers, quotes and request records show it. */
export function formatUsd(amount: Nanos): string {
  const magnitude = amount < 0n ? -amount : amount
  const fraction = (magnitude % NANOS_PER_USD).toString().padStart(9, '0')
  return `${amount < 0n ? '-' : ''}${magnitude / NANOS_PER_USD}.${fraction}`
}

/** As people read it in a sentence: without the zeros at its end. */
export function shortUsd(amount: Nanos): string {
  return formatUsd(amount).replace(/\.?0+$/, '')
}

export function plus(...amounts: readonly Nanos[]): Nanos {
  let total = 0n
  for (const amount of amounts) total += amount
  return nanos(total)
}

/** A price: nano-USD for one unit, as an exact fraction. */
export type UnitPrice = Rational

/** The price of one token where a million of them cost `price`. Finer than a nano per million is fine here. */
export function perMillion(price: string): UnitPrice {
  const { numerator, denominator } = decimal(price)
  return rational(numerator * NANOS_PER_USD, denominator * 1_000_000n)
}

/** A charge: rounded once, half-even, to the nano. What an upstream claims can be more than the ledger has room for, and is cut there. */
export function charge(exact: Rational): Nanos {
  return capped(roundHalfEven(exact))
}

/** A bound or a hold: rounded up, so that no charge it covers can exceed it. */
export function bound(exact: Rational): Nanos {
  return nanos(ceiling(exact))
}

/**
 * Turns amounts in the order of their buckets into micro-USD, each the difference of two floored running sums, so that
 * the buckets add up to the floored total however the window is split.
 */
export function microsByBucket(amounts: readonly Nanos[]): bigint[] {
  let sum = 0n
  return amounts.map((amount) => {
    const before = wholeMicros(sum)
    sum += amount
    return wholeMicros(sum) - before
  })
}

export function wholeMicros(amount: bigint): bigint {
  return floor(rational(amount, NANOS_PER_MICRO))
}
