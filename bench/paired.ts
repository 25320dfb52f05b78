import { type Metric, median, metric } from './bench.ts'

/** A median with its interval. */
export type Estimate = { readonly middle: number; readonly low: number; readonly high: number }

/**
 * The median of values that were each measured beside their own baseline, and its 95 % interval: from order statistics, so that
 * nothing is assumed of how noise is spread. Of fewer than six values it is the whole range, and less sure than that.
 */
export function estimateOf(values: readonly number[]): Estimate {
  const sorted = values.toSorted((a, b) => a - b)
  const cut = cutFor(sorted.length)
  return { middle: median(sorted), low: sorted[cut] ?? Number.NaN, high: sorted.at(-1 - cut) ?? Number.NaN }
}

/** How many values may be left out on either side: the median lies beyond them with a chance of at most 5 %. */
function cutFor(count: number): number {
  let below = 0
  let chance = 0.5 ** count
  for (let cut = 0; ; cut += 1) {
    below += chance
    if (below > 0.025) return Math.max(0, cut - 1)
    chance *= (count - cut) / (cut + 1)
  }
}

/** Each value over the one beside it. */
export function ratiosOf(values: readonly number[], to: readonly number[]): number[] {
  return values.map((value, at) => value / (to[at] ?? Number.NaN))
}

/** An estimate as three figures, of which the first has the goal. */
export function estimated(name: string, values: readonly number[], unit: string, options: Options = {}): Metric[] {
  const { middle, low, high } = estimateOf(values)
  return [metric(name, middle, unit, options), metric(`${name}_low`, low, unit), metric(`${name}_high`, high, unit)]
}

type Options = NonNullable<Parameters<typeof metric>[3]>
