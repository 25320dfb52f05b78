import { type Fault, invalidRequest } from '../kernel/fault.ts'
import { MOST_CAP_USD } from './price-cap.ts'

/** Digits in a row, with or without a point, or an exponent, that a JavaScript number may not hold. Nearly nothing has it. */
const SUSPECT = /\d[\d.]{15}|\d[eE][+-]?\d{3}/

type Read = (key: string, value: unknown, context?: { readonly source?: string }) => unknown

/** Beyond what whole numbers are exact in. */
function isWide(value: number): boolean {
  return !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))
}

/** Whether a number is another one than was written: it would not be written so again. */
function isChanged(value: number, source: string | undefined): boolean {
  if (isWide(value)) return true
  return source !== undefined && digitsOf(source) !== digitsOf(String(value))
}

/** What a decimal is apart from how it is spelt: its digits and the place of the first. 1.50 is 15e-1, and so is 0.15e1. */
function digitsOf(source: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? []
  const digits = (whole + fraction).replace(/^0+/, '')
  if (digits === '') return '0'
  const kept = digits.replace(/0+$/, '')
  const place = Number(exponent) - fraction.length + (digits.length - kept.length)
  return `${sign}${kept}e${place}`
}

/**
 * What is wrong with a text of which a number would come out as another: arguments are written again before they are sent on. Over
 * HTTP the caller's own bytes go on.
 */
export function inexactNumberIn(text: string): Fault | undefined {
  if (!SUSPECT.test(text)) return undefined
  let found: string | undefined
  const read: Read = (name, value, context) => {
    if (typeof value === 'number' && isChanged(value, context?.source))
      found ??= wordsFor(name, value, (context?.source ?? '').slice(0, 40))
    return value
  }
  JSON.parse(text, read)
  return found === undefined ? undefined : invalidRequest(found)
}

/** A cap is not passed on: its own rule is told. */
function wordsFor(name: string, value: number, source: string): string {
  if (name !== 'max_price_usd' && name !== 'max_total_usd')
    return `The number ${source} cannot be passed on exactly. Send it as a string, or with fewer digits.`
  if (value > MOST_CAP_USD) return `"${name}" must be at most ${MOST_CAP_USD}.`
  return `"${name}" must have at most 9 decimals; ${source} has more.`
}

/** JSON of an upstream, where whole numbers that a client could not read exactly are texts. Undefined where it is no JSON. */
export function readExactly(text: string): { readonly json: unknown } | undefined {
  const read: Read = (_, value, context) =>
    typeof value === 'number' && isWide(value) ? (context?.source ?? String(value)) : value
  try {
    return { json: SUSPECT.test(text) ? JSON.parse(text, read) : JSON.parse(text) }
  } catch {
    return undefined
  }
}
