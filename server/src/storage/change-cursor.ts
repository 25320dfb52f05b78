import type pg from 'pg'
import {
  type Change,
  isInLog,
  readChangesAfter,
  readChangesOf,
  readLastChange,
  readLastChangeBefore,
  type Snapshot,
} from './change-log.ts'

type Parts = {
  readonly changed: (change: Change) => void
  /** What was missed is not known: nothing that is remembered may be trusted. */
  readonly reset: () => void
  readonly pageRows?: number
  readonly readRowsMax?: number
}

type Place = {
  /** The change that comes last in the log of those that were told. */
  readonly last: Change
  /** Transactions that come before it and had not ended: what they record is still to be told. */
  readonly running: readonly bigint[]
  /** A change that comes before all of theirs. The log is pruned from its beginning, so as long as this one is there, so are they. */
  readonly floor: Change | undefined
}

/**
 * A reader's place in the change log. Changes are told as soon as they are committed, in whatever order that happens, each
 * once: the place is the last change told together with the transactions before it that were still running, so a read
 * finds what comes after the one and what the others left when they ended, and nothing that was told already.
 *
 * The place is a row, never a number alone: after a crash PostgreSQL hands out again the transaction ids that had not
 * reached its disk, but always above those of rows that anybody has seen. When the row at our place is gone, it was
 * pruned, or lost by a failover, and we start over.
 */
export function createChangeCursor({ changed, reset, pageRows = 1_000, readRowsMax = 20_000 }: Parts) {
  let place: Place | undefined

  async function startOver(client: pg.ClientBase): Promise<void> {
    place = await findEnd(client)
    // Somebody emptied the log; without a row in it there would be no place, and everything forgotten at each read.
    if (place === undefined) await client.query(`select record_change(topic => 'change_log', key => 'empty')`)
    reset()
  }

  /** Tells one page of what is new, and all of what comes late; says how long the page was, or undefined where we can't know. */
  async function readPage(client: pg.ClientBase, from: Place): Promise<number | undefined> {
    const page = await readChangesAfter(client, from.last, pageRows)
    if (page === undefined) return undefined
    const late = await readLate(client, from, page.snapshot)
    if (late === undefined) return undefined
    for (const change of late) changed(change)
    for (const change of page.changes) changed(change)
    place = placeAfter(from, page.changes, page.snapshot)
    return page.changes.length
  }

  /** What those left that were running before our place and have ended; undefined where some of it may be gone, or is too much. */
  async function readLate(
    client: pg.ClientBase,
    { running, floor }: Place,
    snapshot: Snapshot,
  ): Promise<readonly Change[] | undefined> {
    const ended = running.filter((transactionId) => !snapshot.running.includes(transactionId))
    if (ended.length === 0) return []
    const late = await readChangesOf(client, ended, readRowsMax + 1)
    const isComplete = late.length <= readRowsMax && floor !== undefined && (await isInLog(client, floor))
    return isComplete ? late : undefined
  }

  /** Tells everything that was committed before the call and not told yet. */
  return async function readToEnd(client: pg.ClientBase): Promise<void> {
    for (let rows = 0; rows < readRowsMax; rows += pageRows) {
      const told = place && (await readPage(client, place))
      if (told === undefined) return startOver(client)
      if (told < pageRows) return
    }
    // Whoever is this far behind is better off without what it remembers than with reading what to forget.
    return startOver(client)
  }
}

async function findEnd(client: pg.ClientBase): Promise<Place | undefined> {
  const end = await readLastChange(client)
  if (end === undefined) return undefined
  const floor = await readLastChangeBefore(client, end.snapshot.horizon)
  return { last: end.last, running: runningBefore(end.last, end.snapshot), floor }
}

function placeAfter(from: Place, changes: readonly Change[], snapshot: Snapshot): Place {
  const last = changes.at(-1) ?? from.last
  const running = runningBefore(last, snapshot)
  const isSettled = ({ transactionId }: Change) => transactionId < snapshot.horizon
  return { last, running, floor: running.length === 0 ? last : (changes.findLast(isSettled) ?? from.floor) }
}

function runningBefore({ transactionId }: Change, { running }: Snapshot): bigint[] {
  return running.filter((other) => other < transactionId)
}
