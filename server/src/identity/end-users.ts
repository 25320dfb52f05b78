import { hash } from 'node:crypto'
import type pg from 'pg'
import { z } from 'zod'
import type { Clock } from '../kernel/clock.ts'
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

export function endUserOf(accountId: Id, { text, label }: NamedEndUser): EndUser {
  return { id: derivedId('end user', accountId, hash('sha256', text)), label: shortened(label) }
}

/** Those for whom there is no place, as one. */
export function otherEndUsers(accountId: Id): EndUser {
  return { id: derivedId('other end users', accountId), label: 'other' }
}

/** Without what a terminal or a page would obey, and never empty. */
function shortened(label: string): string {
  const plain = label
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
    .trim()
  const short = [...plain].slice(0, LABEL_LIMIT).join('')
  return short === '' ? 'unnamed' : short
}

/** Finds an end user, at once where this process has met it in the last hours. */
export type FindEndUser = (accountId: Id, named: NamedEndUser) => EndUser | Promise<EndUser>

type Parts = { readonly pool: pg.Pool; readonly clock: Pick<Clock, 'monotonicMs'>; readonly limit?: number }

const REMEMBERED = 200_000
/** After which it is noted again that somebody was seen. */
const SEEN_AGAIN_MS = 12 * 3_600_000
/** Others may have made room. */
const FULL_AGAIN_MS = 60_000

const knownRow = z.object({ known: z.boolean() })

export function createFindEndUser({ pool, clock, limit = END_USERS_LIMIT }: Parts): FindEndUser {
  const met = createRecentMap<Id, { readonly endUser: EndUser; readonly untilMs: number }>(REMEMBERED)

  async function know(accountId: Id, one: EndUser): Promise<EndUser> {
    const { rows } = await pool.query({
      name: 'know_end_user',
      text: 'select know_end_user(account => $1, end_user => $2, label_in => $3, most => $4) as known',
      values: [accountId, one.id, one.label, limit],
    })
    const { known } = knownRow.parse(rows[0])
    const endUser = known ? one : otherEndUsers(accountId)
    met.set(one.id, { endUser, untilMs: clock.monotonicMs() + (known ? SEEN_AGAIN_MS : FULL_AGAIN_MS) })
    return endUser
  }

  return (accountId, named) => {
    const one = endUserOf(accountId, named)
    const known = met.get(one.id)
    return known !== undefined && clock.monotonicMs() < known.untilMs ? known.endUser : know(accountId, one)
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
