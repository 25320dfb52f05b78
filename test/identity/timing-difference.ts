/** How long something took, in nanoseconds, in each of two cases that must not be told apart. */
export type Timings = readonly [one: readonly number[], other: readonly number[]]

/** Beyond this two samples differ, but for one in a hundred thousand that do not. */
export const T_LIMIT = 4.5

/** Shares of all timings, of which the slower rest is noise of the machine. */
const KEPT = [0.1, 0.2, 0.3, 0.5, 0.75, 0.9, 1] as const

/**
 * How surely two samples differ: the largest of Welch's t over several cuts of the upper tail, as dudect has it. At each cut
 * what is slower is left out, and then again counts as being as slow as the cut: the first notices how the fast ones differ
 * among themselves, the second how many there are of each.
 */
export function difference([one, other]: Timings): number {
  const all = [...one, ...other].sort((a, b) => a - b)
  const ts = KEPT.flatMap((share) => {
    const cut = all[Math.floor((all.length - 1) * share)] ?? 0
    const cropped = (sample: readonly number[]) => sample.filter((time) => time <= cut)
    const clipped = (sample: readonly number[]) => sample.map((time) => Math.min(time, cut))
    return [welch(cropped(one), cropped(other)), welch(clipped(one), clipped(other))]
  })
  return ts.reduce((worst, t) => (Math.abs(t) > Math.abs(worst) ? t : worst), 0)
}

function welch(one: readonly number[], other: readonly number[]): number {
  const [a, b] = [momentsOf(one), momentsOf(other)]
  const error = Math.sqrt(a.variance / one.length + b.variance / other.length)
  return error > 0 ? (a.mean - b.mean) / error : 0
}

function momentsOf(sample: readonly number[]): { mean: number; variance: number } {
  const mean = sample.reduce((sum, time) => sum + time, 0) / sample.length
  const squares = sample.reduce((sum, time) => sum + (time - mean) ** 2, 0)
  return { mean, variance: squares / (sample.length - 1) }
}

export function medianOf(sample: readonly number[]): number {
  return sample.toSorted((a, b) => a - b)[Math.floor(sample.length / 2)] ?? Number.NaN
}
