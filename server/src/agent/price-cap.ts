const PLACES = 9
export const MOST_CAP_USD = 1_000_000_000

/** A cap in decimal USD, and the number that it was cut from where that has more decimals. */
export type Cap = { readonly maxCost: string; readonly cutCap?: number }

/**
 * A cap as an agent's number says it, in decimal USD. JSON has no exact numbers: what is finer than a nano-dollar is cut off, so that a
 * cap is never more than was said.
 */
export function capOf(cap: number): Cap {
  if (!(cap >= 0 && cap <= MOST_CAP_USD)) throw new RangeError('a cap is a number from 0 to a thousand million')
  const [whole = '0', fraction = ''] = plain(cap).split('.')
  const cut = fraction.slice(0, PLACES)
  const maxCost = cut === '' ? whole : `${whole}.${cut}`
  return fraction.length > PLACES ? { maxCost, cutCap: cap } : { maxCost }
}

/** Digits alone, as many as the number has: 1e-7 is 0.0000001. */
function plain(value: number): string {
  const text = String(value)
  return text.includes('e') ? value.toFixed(20) : text
}
