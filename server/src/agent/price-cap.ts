const PLACES = 9
/** More than anybody has. Beyond it a cap caps nothing. */
const MOST_USD = 1_000_000

/**
 * A cap as an agent's number says it, in decimal USD. JSON has no exact numbers: what is finer than a nano-dollar is cut off, so that a
 * cap is never more than was said.
 */
export function capText(cap: number): string {
  if (!Number.isFinite(cap) || cap < 0) throw new RangeError('a cap is a number from 0 on')
  const [whole = '0', fraction = ''] = plain(Math.min(cap, MOST_USD)).split('.')
  const cut = fraction.slice(0, PLACES)
  return cut === '' ? whole : `${whole}.${cut}`
}

/** Digits alone, as many as the number has: 1e-7 is 0.0000001. */
function plain(value: number): string {
  const text = String(value)
  return text.includes('e') ? value.toFixed(20) : text
}
