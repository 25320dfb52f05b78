import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { createRecentMap } from '../kernel/recent-map.ts'
import type { Ceiling } from './account-budgets.ts'

/**
 * Sees to it that the ceilings of a call have allowances, which those that follow everybody's budget get when they are met first. Gives those
 * ceilings that hold: one whose budget was removed in this moment does not.
 */
export type MakeAllowances = (
  accountId: Id,
  ceilings: readonly Ceiling[],
) => readonly Ceiling[] | Promise<readonly Ceiling[]>

const REMEMBERED = 200_000
const idRows = z.array(z.object({ id: z.string() }))

export function createMakeAllowances(pool: pg.Pool): MakeAllowances {
  /** An allowance is never deleted, so that one that was there is. What it follows may have changed. */
  const made = createRecentMap<Id, Id>(REMEMBERED)
  const isMade = ({ allowanceId, follows }: Ceiling) => follows === undefined || made.get(allowanceId) === follows

  async function make(accountId: Id, ceilings: readonly Ceiling[]): Promise<readonly Ceiling[]> {
    const missing = ceilings.filter((ceiling) => !isMade(ceiling))
    const { rows } = await pool.query({
      name: 'make_allowances',
      text: 'select id from make_allowances(account => $1, ids => $2, budgets_in => $3) id',
      values: [accountId, missing.map(({ allowanceId }) => allowanceId), missing.map(({ follows }) => follows)],
    })
    const there = new Set(idRows.parse(rows).map(({ id }) => id))
    for (const { allowanceId, follows } of missing)
      if (follows !== undefined && there.has(allowanceId)) made.set(allowanceId, follows)
    return ceilings.filter((ceiling) => !missing.includes(ceiling) || there.has(ceiling.allowanceId))
  }

  return (accountId, ceilings) => (ceilings.every(isMade) ? ceilings : make(accountId, ceilings))
}
