import { decimalText, multiply, type Rational, rational } from '../kernel/rational.ts'

/** One product of the formula by which a call was priced. */
export type Term = {
  readonly count: string
  /** As the formula says it: input tokens, call, … */
  readonly unit: string
  readonly price_usd: string
  /** Exact, before all of them are added up and rounded once. */
  readonly cost_usd: string
}

const TERM = /^(\d{1,20}) ([^×]{1,80}) × (\d{1,40}(?:\.\d{1,40}|\/[1-9]\d{0,40})?) USD$/

/** What the formula of a record adds up; nothing where it adds nothing up, or is not of ours. */
export function termsOf(formula: string | null): readonly Term[] {
  const terms = (formula ?? '').split(' + ').map(termOf)
  return terms.includes(undefined) ? [] : terms.filter((term) => term !== undefined)
}

function termOf(text: string): Term | undefined {
  const [, count = '', unit = '', price = ''] = TERM.exec(text) ?? []
  if (price === '') return undefined
  const cost = multiply(rational(BigInt(count)), exact(price))
  return { count, unit, price_usd: price, cost_usd: decimalText(cost) }
}

/** A decimal, or a fraction where it has no end as one. */
function exact(text: string): Rational {
  const [numerator = '', denominator] = text.split('/')
  if (denominator !== undefined) return rational(BigInt(numerator), BigInt(denominator))
  const [whole = '', fraction = ''] = text.split('.')
  return rational(BigInt(whole + fraction), 10n ** BigInt(fraction.length))
}
