/** What a benchmark reports: each figure beside its baseline, and whether its goal is met. */
export type Metric = {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** What the value is compared with, measured in the same run; null where it is a plain figure. */
  readonly baseline: number | null
  /** What the value should reach, such as '>= 0.6'; null where it is only reported. */
  readonly goal: string | null
  readonly ok: boolean
}

export type Options = {
  /** A run of seconds, to see that it works; its figures mean little. */
  readonly reduced: boolean
  readonly rounds?: number
  /** Another version of ours, for the benchmark that compares two. */
  readonly against?: { readonly name: string; readonly commit: string }
}

export type Benchmark = (progress: (line: string) => void, options: Options) => Promise<readonly Metric[]>

export function metric(
  name: string,
  value: number,
  unit: string,
  options: { baseline?: number; goal?: string } = {},
): Metric {
  const { baseline = null, goal = null } = options
  return {
    name,
    value: rounded(value),
    unit,
    baseline: baseline === null ? null : rounded(baseline),
    goal,
    ok: goal === null || meets(value, goal),
  }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

function meets(value: number, goal: string): boolean {
  const [, sign, limit] = /^(>=|<=) ([\d.]+)$/.exec(goal) ?? []
  if (limit === undefined) throw new Error(`a goal looks like ">= 0.6", not ${goal}`)
  return sign === '>=' ? value >= Number(limit) : value <= Number(limit)
}

function rounded(value: number): number {
  return Number(value.toPrecision(4))
}
