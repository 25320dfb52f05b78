import { hash } from 'node:crypto'
import type pg from 'pg'
import { z } from 'zod'
import type { Clock } from '../kernel/clock.ts'
import { createCollected } from '../kernel/collected.ts'
import { derivedId } from '../kernel/derived-id.ts'
import type { Id } from '../kernel/ids.ts'
import { createRecentMap } from '../kernel/recent-map.ts'
import type { NamedEndUser } from '../protocols/end-user.ts'

/** For whom a caller makes a call: known by a hash of what the caller said, and by a short label for people. */
export type EndUser = { readonly id: Id; readonly label: string }

/** Of one account; whoever comes beyond that is counted with all the others who do. */
export const END_USERS_LIMIT = 100_000
/** Who was not seen for so long is forgotten, and makes room. */
export const END_USER_IDLE_DAYS = 90

const LABEL_LIMIT = 40
/** Of what is longer, the rest is not looked at. */
const LABEL_SOURCE = 200

export function endUserOf(accountId: Id, named: NamedEndUser): EndUser {
  return { id: endUserIdOf(accountId, named), label: shortened(named.label) }
}

function endUserIdOf(accountId: Id, { text }: NamedEndUser): Id {
  return derivedId('end user', accountId, hash('sha256', text))
}

/** Those for whom there is no place, as one. */
export function otherEndUsers(accountId: Id): EndUser {
  return { id: derivedId('other end users', accountId), label: 'other' }
}

/** Without what a terminal or a page would obey, and never empty. */
function shortened(label: string): string {
  const plain = label
    .slice(0, LABEL_SOURCE)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
    .trim()
  const short = [...plain].slice(0, LABEL_LIMIT).join('')
  return short === '' ? 'unnamed' : short
}

/** An end user whose calls are counted, and by what budgets know it. */
export type FoundEndUser = EndUser & {
  /** By its own name, also where it is counted with the others. */
  readonly named: EndUser
  /** Until when it can have been counted with the others, in Unix milliseconds; null where it never was. */
  readonly lateAtMs: number | null
}

/** Finds an end user, at once where this process has met it in the last hours. */
export type FindEndUser = (accountId: Id, named: NamedEndUser) => FoundEndUser | Promise<FoundEndUser>

type Parts = { readonly pool: pg.Pool; readonly clock: Pick<Clock, 'monotonicMs'>; readonly limit?: number }

const REMEMBERED = 200_000
/** After which it is noted again that somebody was seen. */
const SEEN_AGAIN_MS = 12 * 3_600_000
/** Others may have made room. It is less than the two minutes that know_end_users grants. */
const FULL_AGAIN_MS = 60_000

const knownRows = z.array(z.object({ known: z.boolean(), late_at: z.date().nullable() }))

type Met = { readonly accountId: Id; readonly one: EndUser }

export function createFindEndUser({ pool, clock, limit = END_USERS_LIMIT }: Parts): FindEndUser {
  const met = createRecentMap<Id, { readonly endUser: FoundEndUser; readonly untilMs: number }>(REMEMBERED)
  const know = createCollected<Met, FoundEndUser>(
    ({ one }) => one.id,
    async (some) => {
      const { rows } = await pool.query({
        name: 'know_end_users',
        text: `select known, late_at from know_end_users(accounts_in => $1, end_users_in => $2, labels => $3, most => $4)`,
        values: [
          some.map(({ accountId }) => accountId),
          some.map(({ one }) => one.id),
          some.map(({ one }) => one.label),
          limit,
        ],
      })
      return knownRows.parse(rows).map(({ known, late_at: lateAt }, at) => noted(some[at], known, lateAt))
    },
  )

  function noted(asked: Met | undefined, known: boolean, lateAt: Date | null): FoundEndUser {
    if (asked === undefined) throw new Error('know_end_users answered for somebody whom nobody asked for')
    const { accountId, one } = asked
    const counted = known ? one : otherEndUsers(accountId)
    const endUser = { ...counted, named: one, lateAtMs: lateAt?.getTime() ?? null }
    met.set(one.id, { endUser, untilMs: clock.monotonicMs() + (known ? SEEN_AGAIN_MS : FULL_AGAIN_MS) })
    return endUser
  }

  return (accountId, named) => {
    const id = endUserIdOf(accountId, named)
    const known = met.get(id)
    if (known !== undefined && clock.monotonicMs() < known.untilMs) return known.endUser
    return know({ accountId, one: endUserOf(accountId, named) })
  }
}

const prunedRow = z.object({ pruned: z.int() })
const PORTION = 5_000

/** Forgets those that nobody has seen for long. */
export async function pruneEndUsers(pool: pg.Pool, olderThanDays = END_USER_IDLE_DAYS): Promise<number> {
  const { rows } = await pool.query('select prune_end_users(older_than_days => $1, most => $2) as pruned', [
    olderThanDays,
    PORTION,
  ])
  return prunedRow.parse(rows[0]).pruned
}
