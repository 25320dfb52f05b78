import type { UsageQuery } from './usage-query.ts'

export const HOUR_SECONDS = 3_600
export const DAY_SECONDS = 86_400
export type Span = { readonly from: number; readonly to: number }
export type Spans = { readonly days: readonly Span[]; readonly hours: readonly Span[] }

/** Whole Unix seconds; `nowSeconds` as in UsageQuery. */
type Window = Pick<UsageQuery, 'startSeconds' | 'endSeconds' | 'nowSeconds'>

/** A part of an hour whose charges are read: they are added, or taken from the sum of their hour. */
export type Cut = Span & { readonly sign: '' | '-' }

/**
 * The hours that are taken as a whole, and the parts of hours at the ends of the window, of which there are two at the most.
 *
 * Where more of the last hour lies in the window than after it, it is taken as a whole, less what came after the window. So a
 * report until now reads no more of the running hour's charges than what came since, however many there are.
 */
export function splitByHours(query: Window): { readonly whole: Span; readonly cuts: readonly Cut[] } {
  const { startSeconds, endSeconds } = query
  const [from, to] = [floorTo(startSeconds + HOUR_SECONDS - 1, HOUR_SECONDS), floorTo(endSeconds, HOUR_SECONDS)]
  if (from > to) return { whole: { from, to }, cuts: [{ from: startSeconds, to: endSeconds, sign: '' }] }
  const next = to + HOUR_SECONDS
  const secondsAfter = Math.min(next, query.nowSeconds ?? next) - endSeconds
  const takesLast = endSeconds > to && secondsAfter < endSeconds - to
  const cuts: readonly Cut[] = [
    { from: startSeconds, to: from, sign: '' },
    takesLast ? { from: endSeconds, to: next, sign: '-' } : { from: to, to: endSeconds, sign: '' },
  ]
  return { whole: { from, to: takesLast ? next : to }, cuts: cuts.filter((cut) => cut.from < cut.to) }
}

export function floorTo(seconds: number, width: number): number {
  return Math.floor(seconds / width) * width
}

/** Whole days up to a last one, and the hours before and after them; all of it is hours where days are not to be used. */
export function splitByDays({ from, to }: Span, hasDays: boolean, daysUntil = Number.POSITIVE_INFINITY): Spans {
  const [first, last] = [floorTo(from + DAY_SECONDS - 1, DAY_SECONDS), floorTo(Math.min(to, daysUntil), DAY_SECONDS)]
  if (!hasDays || first >= last) return { days: [], hours: [{ from, to }] }
  const hours = [
    { from, to: first },
    { from: last, to },
  ]
  return { days: [{ from: first, to: last }], hours: hours.filter((span) => span.from < span.to) }
}
