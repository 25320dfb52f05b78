import type { ProcessView } from './processes.ts'
import type { ReportedUpstream } from './report.ts'

/** An upstream as all processes see it. */
export type UpstreamView = {
  readonly id: string
  readonly name: string
  /** Down where every process that knows has its breaker open; partly where only some have. */
  readonly state: 'up' | 'partly' | 'down'
  /** Since when it is down for the first of them, or up again for the last; null where it was always up. */
  readonly since: Date | null
  /** In the last minutes, over all processes. */
  readonly asked: number
  readonly failed: number
  /** Those of the process for which it is slowest. */
  readonly p50Ms: number | null
  readonly p95Ms: number | null
}

type Seen = ReportedUpstream & { readonly changedAtMs: number | null }

/** Those that are down first, then in the order of their names. */
export function upstreamsOf(processes: readonly ProcessView[]): readonly UpstreamView[] {
  const seen = processes.flatMap(({ isAlive, seenAt, report }) =>
    isAlive && report !== null ? report.upstreams.map((one) => seenAtTime(one, seenAt)) : [],
  )
  const views = [...Map.groupBy(seen, ({ id }) => id).values()].flatMap(viewOf)
  const rank = { down: 0, partly: 1, up: 2 }
  return views.toSorted(
    (one, other) => rank[one.state] - rank[other.state] || (one.name < other.name ? -1 : Number(one.name > other.name)),
  )
}

function seenAtTime(one: ReportedUpstream, at: Date): Seen {
  const { changedSecondsAgo: seconds } = one
  return { ...one, changedAtMs: seconds === null ? null : at.getTime() - seconds * 1_000 }
}

function viewOf(seen: readonly Seen[]): readonly UpstreamView[] {
  const [first] = seen
  if (first === undefined) return []
  const open = seen.filter(({ breaker }) => breaker !== 'closed')
  // One that has not asked it lately does not know that it is up.
  const closed = seen.filter(({ breaker, asked }) => breaker === 'closed' && (asked > 0 || open.length === 0))
  const state = open.length === 0 ? 'up' : closed.length === 0 ? 'down' : 'partly'
  const changes = (state === 'up' ? closed : open).flatMap(({ changedAtMs }) => changedAtMs ?? [])
  const sinceMs = state === 'up' ? Math.max(...changes) : Math.min(...changes)
  return [
    {
      id: first.id,
      name: first.name,
      state,
      since: changes.length === 0 ? null : new Date(sinceMs),
      asked: sumOf(seen.map(({ asked }) => asked)),
      failed: sumOf(seen.map(({ failed }) => failed)),
      p50Ms: largest(seen.map(({ p50Ms }) => p50Ms)),
      p95Ms: largest(seen.map(({ p95Ms }) => p95Ms)),
    },
  ]
}

const sumOf = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0)

function largest(times: readonly (number | null)[]): number | null {
  const known = times.filter((ms) => ms !== null)
  return known.length === 0 ? null : Math.max(...known)
}
