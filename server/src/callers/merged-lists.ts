import type { Position } from '../ledger/list-requests.ts'

/** A page of a list, the latest first. */
type Listed<Row> = {
  readonly rows: readonly { readonly at: Position; readonly shown: Row }[]
  /** Where it goes on; null where it has come to its end. */
  readonly next: Position | null
}

/** A page of two lists as one. Where one has stopped, the rest of the other is for the next page: rows of the first may stand in between. */
export function mergedPage<One, Other>(one: Listed<One>, other: Listed<Other>, limit: number) {
  const [stop = null] = [one.next, other.next].filter((next) => next !== null).toSorted(latestFirst)
  const all = [...one.rows, ...other.rows]
    .filter(({ at }) => stop === null || latestFirst(at, stop) <= 0)
    .toSorted((first, second) => latestFirst(first.at, second.at))
  const rows = all.slice(0, limit)
  const next = all.length > limit ? (rows.at(-1)?.at ?? null) : stop
  return { rows: rows.map(({ shown }) => shown), next }
}

function latestFirst(one: Position, other: Position): number {
  if (one.endedUs !== other.endedUs) return one.endedUs > other.endedUs ? -1 : 1
  if (one.id === other.id) return 0
  return one.id > other.id ? -1 : 1
}
