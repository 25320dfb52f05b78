import type pg from 'pg'
import { type Change, readChanges, readNewestChange } from './change-log.ts'

type Parts = {
  readonly changed: (change: Change) => void
  /** What was missed is not known: nothing that is remembered may be trusted. */
  readonly reset: () => void
  readonly pageRows?: number
  readonly readRowsMax?: number
}

/**
 * A reader's place in the change log. Changes are told as soon as they are committed, in whatever order that happens;
 * the place itself is the last change told below the horizon (see Change), so a transaction that commits late is
 * still ahead of it. Changes told from beyond the horizon are read again each time, and remembered so as to be told once.
 *
 * The place is a row, never a number: after a crash PostgreSQL hands out again the transaction ids that had not reached
 * its disk, but always above those of rows that anybody has seen. When the row at our place is gone, it was pruned, or
 * lost by a failover, and we start over.
 */
export function createChangeCursor({ changed, reset, pageRows = 1_000, readRowsMax = 20_000 }: Parts) {
  let place: Change | undefined
  let toldBeyondHorizon: ReadonlySet<string> = new Set()

  async function startOver(client: pg.ClientBase): Promise<void> {
    place = await readNewestChange(client)
    // Somebody emptied the log; without a row in it there would be no place, and everything forgotten at each read.
    if (place === undefined) await client.query(`select record_change('change_log', 'empty')`)
    toldBeyondHorizon = new Set()
    reset()
  }

  function tell(page: readonly Change[], horizon: bigint, beyondHorizon: Set<string>): void {
    for (const change of page) {
      if (!toldBeyondHorizon.has(change.mark)) changed(change)
      if (change.transactionId < horizon) place = change
      else beyondHorizon.add(change.mark)
    }
  }

  /** Tells everything that was committed before the call and not told yet. */
  return async function readToEnd(client: pg.ClientBase): Promise<void> {
    if (place === undefined) return startOver(client)
    const beyondHorizon = new Set<string>()
    let from = place
    // Of the first page only: between two pages the horizon moves, and rows may appear in what was read already.
    let horizon: bigint | undefined
    for (let rows = 0; rows < readRowsMax; rows += pageRows) {
      const [first, ...page] = await readChanges(client, from, pageRows + 1)
      if (first?.mark !== from.mark) return startOver(client)
      horizon ??= first.horizon
      tell(page, horizon, beyondHorizon)
      const last = page.at(-1)
      if (last === undefined || page.length < pageRows) {
        toldBeyondHorizon = beyondHorizon
        return
      }
      from = last
    }
    // Whoever is this far behind is better off without what it remembers than with reading what to forget.
    return startOver(client)
  }
}
