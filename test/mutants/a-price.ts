/** A source to be mutated, of which one half is tested. */
export const FREE_UNITS = 10 - 7

export function chargeFor(units: number): number {
  return units > FREE_UNITS ? units : 0
}

export function discountFor(units: number): number {
  return units > 100 ? 5 : 0
}
