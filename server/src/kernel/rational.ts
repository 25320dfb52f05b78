/** An exact fraction. Prices are fractions until the one moment a charge is rounded. The denominator is positive. */
export type Rational = { readonly numerator: bigint; readonly denominator: bigint }

export function rational(numerator: bigint, denominator: bigint = 1n): Rational {
  if (denominator === 0n) throw new RangeError('a fraction needs a denominator other than zero')
  return denominator < 0n ? { numerator: -numerator, denominator: -denominator } : { numerator, denominator }
}

const DECIMAL = /^(-?)(\d{1,18})(?:\.(\d{1,18}))?$/

/** Reads a plain decimal such as `1.45`: no exponent, no sign but minus, at most 18 digits on either side. */
export function decimal(text: string): Rational {
  const match = DECIMAL.exec(text)
  if (!match) throw new RangeError(`not a plain decimal number: ${JSON.stringify(text.slice(0, 40))}`)
  const [, sign = '', whole = '', fraction = ''] = match
  const magnitude = BigInt(whole + fraction)
  return rational(sign === '-' ? -magnitude : magnitude, 10n ** BigInt(fraction.length))
}

export function add(a: Rational, b: Rational): Rational {
  if (a.denominator === b.denominator) return { numerator: a.numerator + b.numerator, denominator: a.denominator }
  return {
    numerator: a.numerator * b.denominator + b.numerator * a.denominator,
    denominator: a.denominator * b.denominator,
  }
}

export function multiply(a: Rational, b: Rational): Rational {
  return { numerator: a.numerator * b.numerator, denominator: a.denominator * b.denominator }
}

/** The largest integer that is not above the fraction. */
export function floor({ numerator, denominator }: Rational): bigint {
  const quotient = numerator / denominator
  return numerator % denominator < 0n ? quotient - 1n : quotient
}

/** The smallest integer that is not below the fraction. */
export function ceiling(value: Rational): bigint {
  return -floor({ numerator: -value.numerator, denominator: value.denominator })
}

/** The nearest integer; a tie goes to the even one, so that many roundings lean neither way. */
export function roundHalfEven(value: Rational): bigint {
  const below = floor(value)
  const twiceRest = 2n * (value.numerator - below * value.denominator)
  if (twiceRest < value.denominator) return below
  if (twiceRest > value.denominator) return below + 1n
  return below % 2n === 0n ? below : below + 1n
}

/**
 * Exact decimal text, shifted right by so many places: nano-USD become USD by nine. What has no end as a decimal is written
 * as a fraction.
 */
export function decimalText({ numerator, denominator }: Rational, places = 0): string {
  const scale = 10n ** 30n
  const scaled = (numerator < 0n ? -numerator : numerator) * scale
  if (scaled % denominator !== 0n) return `${numerator}/${denominator * 10n ** BigInt(places)}`
  const digits = (scaled / denominator).toString().padStart(31 + places, '0')
  const point = digits.length - 30 - places
  const fraction = digits.slice(point).replace(/0+$/, '')
  return `${numerator < 0n ? '-' : ''}${digits.slice(0, point)}${fraction === '' ? '' : `.${fraction}`}`
}
