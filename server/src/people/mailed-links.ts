import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import type { Secret } from '../kernel/secret.ts'
import type { Query } from '../storage/transaction.ts'
import { type Attempts, addressKey, networkKey, type Tried } from './attempts.ts'
import { newToken } from './tokens.ts'
import type { Visitor } from './visitor.ts'

/** Links in mails: each works once, for half an hour. */

const LIFE_MINUTES = 30

export type LinkKind = 'verify' | 'reset'

type New = {
  readonly kind: LinkKind
  /** Null writes a row that no link leads to, so that a known address takes no more work than an unknown one. */
  readonly personId: Id | null
  readonly name?: string | null
  readonly password?: string | null
  /** Where that was typed. */
  readonly browser?: Buffer | null
}

export type NewLink = { readonly token: Secret; readonly at: string; readonly until: string }

const times = z.object({ created_at: z.date(), expires_at: z.date() })

export async function addLink(query: Query, { kind, personId, name, password, browser }: New): Promise<NewLink> {
  const { secret: token, hash } = newToken()
  const { rows } = await query(
    `insert into mailed_links (hash, kind, person_id, name, password, browser, created_at, expires_at)
     select $1, $2, $3, $4, $5, $6, now.at, now.at + interval '${LIFE_MINUTES} minutes' from clock_timestamp() now (at)
     returning created_at, expires_at`,
    [hash, kind, personId, name ?? null, password ?? null, browser ?? null],
  )
  const { created_at: at, expires_at: until } = times.parse(rows[0])
  return { token, at: at.toISOString(), until: until.toISOString() }
}

const usable = `kind = $2 and used_at is null and expires_at > clock_timestamp()`

/** What a link is for, without using it. */
export async function findLink(query: Query, kind: LinkKind, hash: Buffer): Promise<{ personId: Id } | null> {
  const { rows } = await query(`select person_id from mailed_links where hash = $1 and ${usable}`, [hash, kind])
  const [found] = linkRows.parse(rows)
  return found === undefined || found.person_id === null ? null : { personId: found.person_id }
}

const linkRows = z.array(z.object({ person_id: z.string().nullable() }))
const takenRow = z.object({
  name: z.string().nullable(),
  password: z.string().nullable(),
  browser: z.instanceof(Buffer).nullable(),
})

/** Uses a link, and with it every other one of its kind that the person has. Null where somebody was faster. */
export async function useLink(
  query: Query,
  { kind, hash, personId }: { kind: LinkKind; hash: Buffer; personId: Id },
): Promise<z.output<typeof takenRow> | null> {
  const { rows } = await query(
    `update mailed_links set used_at = clock_timestamp() where hash = $1 and ${usable} and person_id = $3 returning name, password, browser`,
    [hash, kind, personId],
  )
  const taken = takenRow.optional().parse(rows[0])
  if (taken === undefined) return null
  // What was typed with it is kept no longer.
  await query(
    `update mailed_links set used_at = coalesce(used_at, clock_timestamp()), name = null, password = null
     where person_id = $1 and kind = $2`,
    [personId, kind],
  )
  return taken
}

/** Under what a link that somebody brings is counted while it is not known whether it is one. */
export function triedLink({ limits }: Attempts, visitor: Visitor): readonly Tried[] {
  return [
    { limit: limits.linkFromAddress, key: addressKey(visitor) },
    { limit: limits.linkFromNetwork, key: networkKey(visitor) },
  ]
}
