import { Fault } from '../kernel/fault.ts'

/** Digits in a row, or an exponent, that a JavaScript number may not hold. What it finds is looked at closely; nearly nothing has it. */
const SUSPECT = /\d{16}|\d[eE][+-]?\d{3}/

type Read = (key: string, value: unknown, context?: { readonly source?: string }) => unknown

/** Whether a number is another one than was written. */
function isChanged(value: number): boolean {
  return !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))
}

/**
 * Arguments are written again before they are sent on, so that a number that would come out as another is refused. Over HTTP the
 * caller's own bytes go on.
 */
export function requireExactNumbers(text: string): void {
  if (!SUSPECT.test(text)) return
  const read: Read = (_, value, context) => {
    if (typeof value !== 'number' || !isChanged(value)) return value
    const shown = context?.source?.slice(0, 40) ?? ''
    throw new Fault('invalid_request', {
      detail: `The number ${shown} is beyond what can be passed on exactly (2^53). Send it as a string.`,
    })
  }
  JSON.parse(text, read)
}

/** JSON of an upstream, where whole numbers that a client could not read exactly are texts. Undefined where it is no JSON. */
export function readExactly(text: string): { readonly json: unknown } | undefined {
  const read: Read = (_, value, context) =>
    typeof value === 'number' && isChanged(value) ? (context?.source ?? String(value)) : value
  try {
    return { json: SUSPECT.test(text) ? JSON.parse(text, read) : JSON.parse(text) }
  } catch {
    return undefined
  }
}
