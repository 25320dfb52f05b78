import type pg from 'pg'
import { z } from 'zod'
import { requireUnblocked } from '../grants/unblocked.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import type { Secret } from '../kernel/secret.ts'
import { type By, record } from '../storage/audit.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { hashOfToken, newToken } from './tokens.ts'
import type { Visitor } from './visitor.ts'

/** Sessions of browsers: 30 days, a week without use, and ten minutes for the second factor. */

const SESSION_DAYS = 30
const IDLE_DAYS = 7
const WAIT_MINUTES = 10
const FRESH_MINUTES = 10
/** So that a script that signs in again and again fills no table. */
const SESSIONS_OF_PERSON = 50
/** A session is not written to at every request. */
const SEEN_EVERY_SECONDS = 60

const ALIVE = `ended_at is null and expires_at > clock_timestamp() and seen_at > clock_timestamp() - interval '${IDLE_DAYS} days'`

/** It has run out then, so that it is not kept for as long as it might have lasted. */
const END = 'ended_at = clock_timestamp(), expires_at = clock_timestamp()'

export type SignedIn = { readonly session: Secret; readonly needs: 'nothing' | 'second_factor' }

type Opening = {
  readonly personId: Id
  /** The password that was compared; null where another proof was given. */
  readonly password: string | null
  readonly remembered?: string | undefined
}

/**
 * Opens a session for somebody who has proven who they are, unless an operator has blocked them. Null where the password was changed meanwhile: the row of the person is
 * locked, so that a reset either comes first or ends this session with the others.
 */
export async function openSession(
  query: Query,
  ids: Ids,
  { address, agent }: Visitor,
  { personId, password, remembered }: Opening,
): Promise<SignedIn | null> {
  await requireUnblocked(query, personId)
  const { secret, hash } = newToken()
  const { rows } = await query(
    `with person as materialized (
       select id, totp_since is null or exists (
         select from remembered_browsers browser
         where browser.hash = $3 and browser.person_id = people.id and browser.expires_at > clock_timestamp()) as is_complete
       from people where id = $1 and verified_at is not null and ($2::text is null or password = $2) for share
     )
     insert into browser_sessions (id, hash, person_id, expires_at, address, agent, is_complete)
     select $4, $5, id, clock_timestamp() + case when is_complete then interval '${SESSION_DAYS} days'
       else interval '${WAIT_MINUTES} minutes' end, $6, $7, is_complete from person
     returning is_complete`,
    [personId, password, hashOfToken(remembered ?? ''), ids.next(), hash, address, agent],
  )
  const opened = openedRow.optional().parse(rows[0])
  if (opened === undefined) return null
  await dropOldest(query, personId, opened.is_complete)
  return { session: secret, needs: opened.is_complete ? 'nothing' : 'second_factor' }
}

/** Apart for those that are complete: whoever knows a password and no second factor must not sign its owner out. */
export async function dropOldest(query: Query, personId: Id, isComplete: boolean): Promise<void> {
  await query(
    `delete from browser_sessions where person_id = $1 and is_complete = $2 and ended_at is null and id not in (
       select id from browser_sessions where person_id = $1 and is_complete = $2 and ended_at is null order by id desc limit $3)`,
    [personId, isComplete, SESSIONS_OF_PERSON],
  )
}

const openedRow = z.object({ is_complete: z.boolean() })

const session = z
  .object({
    id: z.string(),
    person_id: z.string(),
    email: z.string(),
    name: z.string(),
    is_complete: z.boolean(),
    created_at: z.date(),
    has_second_factor: z.boolean(),
    second_factor_at: z.date().nullable(),
  })
  .transform((row) => ({
    ...{ id: row.id, personId: row.person_id, email: row.email, name: row.name, isComplete: row.is_complete },
    ...{ createdAt: row.created_at, hasSecondFactor: row.has_second_factor, secondFactorAt: row.second_factor_at },
  }))

/** Who has signed in with a browser. Only a complete one may do anything but pass the second factor. */
export type Session = Readonly<z.output<typeof session>>

export async function sessionOf(pool: pg.Pool, token: string): Promise<Session | null> {
  const hash = hashOfToken(token)
  if (hash === null) return null
  const { rows } = await pool.query(
    `select session.id, person_id, email, name, is_complete, session.created_at, second_factor_at,
       totp_since is not null as has_second_factor,
       seen_at < clock_timestamp() - make_interval(secs => $2) as is_stale
     from browser_sessions session join people on people.id = person_id where hash = $1 and ${ALIVE}`,
    [hash, SEEN_EVERY_SECONDS],
  )
  if (rows[0] === undefined) return null
  const found = session.parse(rows[0])
  if (rows[0].is_stale === true)
    await pool.query('update browser_sessions set seen_at = clock_timestamp() where id = $1 and ended_at is null', [
      found.id,
    ])
  return found
}

const listed = z
  .object({
    id: z.string(),
    created_at: z.date(),
    seen_at: z.date(),
    expires_at: z.date(),
    address: z.string(),
    agent: z.string(),
    is_complete: z.boolean(),
  })
  .transform(({ created_at: createdAt, seen_at: seenAt, expires_at: expiresAt, is_complete: isComplete, ...row }) => ({
    ...{ ...row, createdAt, seenAt, expiresAt, isComplete },
  }))

export type ListedSession = Readonly<z.output<typeof listed>>

/** Whether it was opened so short a time ago that whoever has it has just proven who they are. */
export async function isFresh(query: Query, id: Id): Promise<boolean> {
  const { rowCount } = await query(
    `select from browser_sessions
     where id = $1 and is_complete and created_at > clock_timestamp() - interval '${FRESH_MINUTES} minutes' and ${ALIVE}`,
    [id],
  )
  return rowCount === 1
}

/** Those that are open, the newest first. */
export async function listSessions(pool: pg.Pool, personId: Id): Promise<readonly ListedSession[]> {
  const { rows } = await pool.query(
    `select id, created_at, seen_at, expires_at, address, agent, is_complete from browser_sessions
     where person_id = $1 and ${ALIVE} order by id desc limit $2`,
    [personId, SESSIONS_OF_PERSON],
  )
  return z.array(listed).parse(rows)
}

/** False where the person has no such session open. */
export function endSession(pool: pg.Pool, by: By, personId: Id, id: Id): Promise<boolean> {
  return inTransaction(pool, async (query) => {
    const { rowCount } = await query(
      `update browser_sessions set ${END} where id = $1 and person_id = $2 and ${ALIVE}`,
      [id, personId],
    )
    if (rowCount !== 1) return false
    const change = { before: { isEnded: false }, after: { isEnded: true } }
    await record(query, by, { action: 'session.ended', subject: id, ...change })
    return true
  })
}

/** Ends every session but one, and forgets every browser. How many sessions that were. */
export function endAllSessions(pool: pg.Pool, by: By, personId: Id, exceptId: Id | null = null): Promise<number> {
  return inTransaction(pool, async (query) => {
    const ended = await endSessionsWithin(query, personId, exceptId)
    if (ended > 0)
      await record(query, by, {
        ...{ action: 'session.all_ended', subject: personId },
        ...{ before: { sessions: ended }, after: { sessions: 0 } },
      })
    return ended
  })
}

export async function endSessionsWithin(query: Query, personId: Id, exceptId: Id | null = null): Promise<number> {
  // Whoever is just signing in is waited for, and signed out with the rest.
  await query('select from people where id = $1 for no key update', [personId])
  const { rowCount } = await query(
    `update browser_sessions set ${END} where person_id = $1 and id is distinct from $2 and ${ALIVE}`,
    [personId, exceptId],
  )
  await query('delete from remembered_browsers where person_id = $1', [personId])
  return rowCount ?? 0
}
