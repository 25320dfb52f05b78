import type pg from 'pg'
import { z } from 'zod'
import type { Clock } from '../kernel/clock.ts'
import { createCollected } from '../kernel/collected.ts'
import type { Id } from '../kernel/ids.ts'
import { createRecentMap } from '../kernel/recent-map.ts'
import type { Ceiling } from './account-budgets.ts'

/**
 * Sees to it that the ceilings of a call have allowances, which those that follow everybody's budget get when they are met first. Gives those
 * ceilings that hold: one whose budget was removed in this moment does not, nor one that is only looked for and not there.
 */
export type MakeAllowances = (ceilings: readonly Ceiling[]) => readonly Ceiling[] | Promise<readonly Ceiling[]>

type Parts = { readonly pool: pg.Pool; readonly clock: Pick<Clock, 'monotonicMs'> }

const REMEMBERED = 200_000
/** Somebody else may have made it. */
const LOOKED_AGAIN_MS = 60_000
const idRows = z.array(z.object({ id: z.string() }))

export function createMakeAllowances({ pool, clock }: Parts): MakeAllowances {
  /** An allowance is never deleted, so that one that was there is. What it follows may have changed. */
  const made = createRecentMap<Id, Id>(REMEMBERED)
  /** Those that were looked for and not there, and until when that is believed. */
  const missed = createRecentMap<Id, number>(REMEMBERED)

  const make = createCollected<Ceiling, boolean>(
    ({ allowanceId, follows, isLookedFor }) => `${allowanceId} ${follows} ${isLookedFor === true}`,
    async (some) => {
      const { rows } = await pool.query({
        name: 'make_allowances',
        text: 'select id from make_allowances(ids => $1, budgets_in => $2) id',
        values: [
          some.map(({ allowanceId }) => allowanceId),
          some.map(({ follows, isLookedFor }) => (isLookedFor === true ? null : follows)),
        ],
      })
      const there = new Set(idRows.parse(rows).map(({ id }) => id))
      return some.map((ceiling) => noted(ceiling, there.has(ceiling.allowanceId)))
    },
  )

  function noted({ allowanceId, follows, isLookedFor }: Ceiling, isThere: boolean): boolean {
    if (isThere && follows !== undefined) made.set(allowanceId, follows)
    if (!isThere && isLookedFor === true) missed.set(allowanceId, clock.monotonicMs() + LOOKED_AGAIN_MS)
    return isThere
  }

  /** Undefined where that has to be asked for. */
  function isThere({ allowanceId, follows, isLookedFor }: Ceiling): boolean | undefined {
    if (follows === undefined || made.get(allowanceId) === follows) return true
    return isLookedFor === true && clock.monotonicMs() < (missed.get(allowanceId) ?? 0) ? false : undefined
  }

  async function makeThem(ceilings: readonly Ceiling[]): Promise<readonly Ceiling[]> {
    const there = await Promise.all(ceilings.map((ceiling) => isThere(ceiling) ?? make(ceiling)))
    return ceilings.filter((_, at) => there[at] === true)
  }

  return (ceilings) => {
    const known = ceilings.map(isThere)
    if (known.includes(undefined)) return makeThem(ceilings)
    return known.includes(false) ? ceilings.filter((_, at) => known[at] === true) : ceilings
  }
}
