/** PostgreSQL's own text of a time, to the microsecond: a Date would cut it to milliseconds. */
export function microseconds(text: string): bigint {
  const [, whole = '', fraction = ''] = /^(.*?)(?:\.(\d+))?\+00$/.exec(text) ?? []
  return BigInt(Date.parse(`${whole.replace(' ', 'T')}Z`)) * 1000n + BigInt(fraction.padEnd(6, '0'))
}

export type Span = { readonly fromUs: bigint; readonly toUs: bigint }

/** How many of the spans there were at once, at the most. One that ends where another begins does not overlap it. */
export function mostAtOnce(spans: readonly Span[]): number {
  const changes = spans.flatMap(({ fromUs, toUs }) => [
    { atUs: fromUs, change: 1 },
    { atUs: toUs, change: -1 },
  ])
  changes.sort((a, b) => (a.atUs === b.atUs ? a.change - b.change : a.atUs < b.atUs ? -1 : 1))
  let [now, most] = [0, 0]
  for (const { change } of changes) {
    now += change
    most = Math.max(most, now)
  }
  return most
}

/** Fixed windows, each begun by the first event that no window before it holds: how many events each has. */
export function fixedWindows(atUs: readonly bigint[], windowSeconds: number): number[] {
  const lengthUs = BigInt(windowSeconds) * 1_000_000n
  const counts: number[] = []
  let startUs: bigint | undefined
  for (const us of atUs.toSorted((a, b) => (a < b ? -1 : 1))) {
    if (startUs === undefined || us >= startUs + lengthUs) {
      startUs = us
      counts.push(0)
    }
    counts[counts.length - 1] = (counts.at(-1) ?? 0) + 1
  }
  return counts
}
