/** One difference between two contracts, by what it does to programs that were written by the first. */
export type Change = {
  readonly kind: 'breaking' | 'additive'
  /** Which operation, and where in it. */
  readonly place: string
  readonly what: string
}

/** `request`: what callers send. `response`: what they get. */
export type Direction = 'request' | 'response'

/** Less fits than before. Who sends may be refused; who reads meets nothing new. */
export function narrower(direction: Direction, place: string, what: string): Change {
  return { kind: direction === 'request' ? 'breaking' : 'additive', place, what }
}

/** More fits than before. Who sends may; who reads may meet what it was not written for. */
export function wider(direction: Direction, place: string, what: string): Change {
  return { kind: direction === 'request' ? 'additive' : 'breaking', place, what }
}

export const breaking = (place: string, what: string): Change => ({ kind: 'breaking', place, what })
export const additive = (place: string, what: string): Change => ({ kind: 'additive', place, what })
