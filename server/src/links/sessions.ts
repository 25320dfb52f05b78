import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import type { Seal } from '../kernel/seal.ts'
import { type By, difference, type Facts, record, SERVICE } from '../storage/audit.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import type { Tokens } from './platform.ts'
import { type Kept, openTokens, wrapTokens } from './tokens.ts'

/** A platform account that is linked to a key, as far as anybody may see it. */
export type Session = {
  readonly id: Id
  readonly credentialId: Id
  readonly upstreamId: Id
  readonly userId: string | null
  readonly username: string | null
  readonly scopes: readonly string[]
  readonly version: number
  readonly canRefresh: boolean
  /** Whether the access token is good for a while yet, by PostgreSQL's clock. */
  readonly isFresh: boolean
  /** Somebody is refreshing it; or was, and has not been heard of for too long. */
  readonly refreshing: 'no' | 'yes' | 'lost'
  readonly ended: 'expired' | 'revoked' | 'lost' | 'ending' | null
  readonly linkedAt: Date
  readonly accessUntil: Date
  /** Since when its platform refuses its tokens: the next call tries once more, and ends it where that is refused too. */
  readonly refusedAt: Date | null
}

/** What is left of a token's life is not enough to begin with. */
const FRESH_SECONDS = 30
/** Whoever refreshes has been heard of by then, or is dead. */
export const REFRESH_SECONDS = 30

const row = z
  .object({
    id: z.string(),
    credential_id: z.string(),
    upstream_id: z.string(),
    user_id: z.string().nullable(),
    username: z.string().nullable(),
    scopes: z.array(z.string()),
    version: z.int(),
    can_refresh: z.boolean(),
    is_fresh: z.boolean(),
    refreshing: z.enum(['no', 'yes', 'lost']),
    ended: z.enum(['expired', 'revoked', 'lost', 'ending']).nullable(),
    linked_at: z.date(),
    access_until: z.date(),
    refused_at: z.date().nullable(),
  })
  .transform(
    (found): Session => ({
      id: found.id,
      credentialId: found.credential_id,
      upstreamId: found.upstream_id,
      userId: found.user_id,
      username: found.username,
      scopes: found.scopes,
      version: found.version,
      canRefresh: found.can_refresh,
      isFresh: found.is_fresh,
      refreshing: found.refreshing,
      ended: found.ended,
      linkedAt: found.linked_at,
      accessUntil: found.access_until,
      refusedAt: found.refused_at,
    }),
  )

/** One that can't be refreshed has ended with its token. */
const COLUMNS = `id, credential_id, upstream_id, user_id, username, scopes, version, can_refresh, linked_at, access_until, refused_at,
  coalesce(ended, case when not can_refresh and access_until <= clock_timestamp() then 'expired' end) as ended,
  access_until > clock_timestamp() + interval '${FRESH_SECONDS} seconds' as is_fresh,
  case when refreshing_since is null then 'no'
    when refreshing_since > clock_timestamp() - interval '${REFRESH_SECONDS} seconds' then 'yes' else 'lost' end as refreshing`

export async function findSession(pool: pg.Pool, credentialId: Id): Promise<Session | undefined> {
  const { rows } = await pool.query(`select ${COLUMNS} from link_sessions where credential_id = $1`, [credentialId])
  return row.optional().parse(rows[0])
}

export type LinksPage = { readonly after: Id | null; readonly most: number }

/** Of all keys and grants of an account, the newest key first. */
export async function sessionsOfAccount(
  pool: pg.Pool,
  accountId: Id,
  { after, most }: LinksPage,
): Promise<readonly Session[]> {
  const { rows } = await pool.query(
    `select ${COLUMNS} from link_sessions where account_id = $1 and ($2::uuid is null or credential_id < $2)
     order by credential_id desc limit $3`,
    [accountId, after, most],
  )
  return z.array(row).parse(rows)
}

const sealed = z.object({ wrapped_key: z.instanceof(Buffer), tokens: z.instanceof(Buffer) })

function opened(seal: Seal, credentialId: Id, row: unknown): Kept | undefined {
  const found = sealed.optional().parse(row)
  return found && openTokens(seal, credentialId, { wrappedKey: found.wrapped_key, tokens: found.tokens })
}

/** The tokens of a session as it was seen; undefined where it is another one by now. */
export async function readTokens(pool: pg.Pool, seal: Seal, session: Session): Promise<Kept | undefined> {
  const { rows } = await pool.query(
    'select wrapped_key, tokens from link_sessions where credential_id = $1 and id = $2 and version = $3',
    [session.credentialId, session.id, session.version],
  )
  return opened(seal, session.credentialId, rows[0])
}

type NewSession = {
  readonly id: Id
  readonly credentialId: Id
  readonly upstreamId: Id
  readonly user: { readonly id: string; readonly username: string } | null
  readonly tokens: Tokens
  readonly undoHash: Buffer
  readonly undoSeconds: number
  /** Of the link that it came from. */
  readonly stateHash: Buffer
}

type Replaced = { readonly upstreamId: Id; readonly tokens: Kept | undefined }

/**
 * Keeps what a platform gave. What the key had before is gone, and told. Nothing is kept, and it is undefined, where the key was
 * revoked meanwhile or has begun another link.
 */
export async function storeSession(
  pool: pg.Pool,
  seal: Seal,
  session: NewSession,
  by: By,
): Promise<{ readonly replaced: Replaced | undefined } | undefined> {
  const { credentialId } = session
  const stored = await inTransaction(pool, async (query) => {
    const { rows } = await writeSession(query, seal, session)
    if (rows[0] === undefined) return undefined
    // Not who the user is: what is written here can't be deleted.
    const after = { id: session.id, upstreamId: session.upstreamId, scopes: session.tokens.scopes }
    const { before } = beforeRow.parse(rows[0])
    await record(query, by, { action: 'link.made', of: credentialId, subject: session.id, before, after })
    return rows[0]
  })
  if (stored === undefined) return undefined
  if (stored.upstream_id === null) return { replaced: undefined }
  return { replaced: { upstreamId: String(stored.upstream_id), tokens: openedOrNone(seal, credentialId, stored) } }
}

const beforeRow = z
  .object({ id: z.string().nullable(), upstream_id: z.string().nullable(), scopes: z.array(z.string()).nullable() })
  .transform(({ id, upstream_id: upstreamId, scopes }) => ({ before: id === null ? null : { id, upstreamId, scopes } }))

/** One row where it is kept, of what the key had before. */
function writeSession(query: Query, seal: Seal, session: NewSession): Promise<pg.QueryResult> {
  const { id, credentialId, upstreamId, user, tokens, undoHash, undoSeconds, stateHash } = session
  const { wrappedKey, tokens: kept } = wrapTokens(seal, credentialId, tokens)
  return query(
    `with before as (
       select id, upstream_id, scopes, wrapped_key, tokens from link_sessions
       where credential_id = $1 for update
     ), stored as (
     insert into link_sessions (credential_id, id, upstream_id, user_id, username, scopes, wrapped_key, tokens,
       access_until, can_refresh, undo_hash, undo_until)
     select $1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp() + make_interval(secs => $9), $10, $11,
       clock_timestamp() + make_interval(secs => $12)
     from (select count(*) from before) locked
     where exists (select from link_attempts where credential_id = $1 and state_hash = $13)
       and exists (select from credentials where credentials.id = $1 and active)
     on conflict (credential_id) do update set id = excluded.id, upstream_id = excluded.upstream_id,
       user_id = excluded.user_id, username = excluded.username, scopes = excluded.scopes,
       wrapped_key = excluded.wrapped_key, tokens = excluded.tokens, access_until = excluded.access_until,
       can_refresh = excluded.can_refresh, version = 1, refreshing_since = null, ended = null, refused_at = null,
       undo_hash = excluded.undo_hash, undo_until = excluded.undo_until, linked_at = clock_timestamp(), refreshed_at = null
     returning id)
     select before.* from stored left join before on true`,
    [
      ...[credentialId, id, upstreamId, user?.id ?? null, user?.username ?? null, tokens.scopes, wrappedKey, kept],
      ...[tokens.expiresInSeconds, tokens.refresh !== null, undoHash, undoSeconds, stateHash],
    ],
  )
}

/** What can't be opened can't be ended at its platform either. */
function openedOrNone(seal: Seal, credentialId: Id, row: unknown): Kept | undefined {
  try {
    return opened(seal, credentialId, row)
  } catch {
    return undefined
  }
}

/** The access token of this version is not taken any more, so that it is refreshed before it is used. False where it can't be. */
export async function distrust(pool: pg.Pool, { credentialId, id }: Session, version: number): Promise<boolean> {
  await pool.query(
    `update link_sessions set access_until = clock_timestamp()
     where credential_id = $1 and id = $2 and version = $3 and can_refresh`,
    [credentialId, id, version],
  )
  const { rows } = await pool.query(
    'select from link_sessions where credential_id = $1 and id = $2 and (can_refresh or version <> $3)',
    [credentialId, id, version],
  )
  return rows.length === 1
}

/** Says that we refresh this version. False where somebody else does, or did. */
export async function beginRefresh(pool: pg.Pool, { credentialId, id, version }: Session): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update link_sessions set refreshing_since = clock_timestamp()
     where credential_id = $1 and id = $2 and version = $3 and refreshing_since is null and ended is null`,
    [credentialId, id, version],
  )
  return rowCount === 1
}

/** The refresh token was certainly not spent. */
export async function leaveRefresh(pool: pg.Pool, { credentialId, id, version }: Session): Promise<void> {
  await pool.query(
    'update link_sessions set refreshing_since = null where credential_id = $1 and id = $2 and version = $3',
    [credentialId, id, version],
  )
}

/**
 * Keeps what came of a refresh; false where the session is gone. A platform that gives no new refresh token lets the old one
 * work on.
 */
export async function storeRefreshed(
  pool: pg.Pool,
  seal: Seal,
  session: Session,
  before: Kept,
  tokens: Tokens,
): Promise<boolean> {
  const { credentialId, id, version } = session
  const kept = wrapTokens(seal, credentialId, { access: tokens.access, refresh: tokens.refresh ?? before.refresh })
  const isStored = await inTransaction(pool, async (query) => {
    const { rows } = await query(
      `with before as (select ended from link_sessions where credential_id = $1 and id = $2 and version = $3 for update)
       update link_sessions set wrapped_key = $4, tokens = $5, scopes = $6, version = version + 1, refreshing_since = null,
         access_until = clock_timestamp() + make_interval(secs => $7), refreshed_at = clock_timestamp(),
         ended = nullif(link_sessions.ended, 'lost')
       from before where credential_id = $1 and id = $2 and version = $3 returning before.ended as before`,
      [credentialId, id, version, kept.wrappedKey, kept.tokens, tokens.scopes, tokens.expiresInSeconds],
    )
    // Somebody had given it up, too soon.
    if (rows[0]?.before === 'lost')
      await recordEnd(query, SERVICE, session, { action: 'link.resumed', ...difference({ ended: 'lost' }, NOT_ENDED) })
    return rows.length === 1
  })
  if (isStored) return true
  // Written before, where the answer was lost: nobody else makes the next version.
  const { rows } = await pool.query(
    'select from link_sessions where credential_id = $1 and id = $2 and version = $3 + 1',
    [credentialId, id, version],
  )
  return rows.length === 1
}

const NOT_ENDED = { ended: null }

type LinkEnd = { readonly action: `link.${string}`; readonly before: Facts | null; readonly after: Facts | null }

function recordEnd(query: Query, by: By, { credentialId, id }: Pick<Session, 'credentialId' | 'id'>, end: LinkEnd) {
  return record(query, by, { of: credentialId, subject: id, ...end })
}

/**
 * Nothing is written with it from now on. Its user can still undo it, so that the platform hears of it too. What its owner says
 * goes before what we have found out. The audit log has it once, however often it is said.
 */
export async function endSession(
  pool: pg.Pool,
  session: Session,
  why: NonNullable<Session['ended']>,
  { by, action }: { readonly by: By; readonly action: LinkEnd['action'] },
): Promise<void> {
  await inTransaction(pool, async (query) => {
    const { rows } = await query(
      `with before as (select ended from link_sessions where credential_id = $1 and id = $2 for update)
       update link_sessions set ended = $3 from before
       where credential_id = $1 and id = $2
         and (before.ended is null or ($3 = 'ending' and before.ended <> 'ending')) returning before.ended as before`,
      [session.credentialId, session.id, why],
    )
    const changed = (before: string | null) => difference({ ended: before }, { ended: why })
    for (const { before } of endRows.parse(rows)) await recordEnd(query, by, session, { action, ...changed(before) })
  })
}

const endRows = z.array(z.object({ before: z.string().nullable() }))

/** Tells somebody of a session, in the transaction of what has become of it. */
export type TellOwner = (query: Query, session: Session) => Promise<unknown>

/**
 * What the platform's refusal of the token of this version makes of a session: the first is marked and its owner told, and the
 * next, of a call that has seen the mark, ends it. It says nothing about one that has another token by now, or is another.
 */
export async function refuseAt(
  pool: pg.Pool,
  session: Session,
  version: number,
  tell: TellOwner,
): Promise<'marked' | 'ended' | 'replaced'> {
  const isLast = session.refusedAt !== null
  return inTransaction(pool, async (query) => {
    const { rows } = await query(
      `with before as (select ended, refused_at from link_sessions where credential_id = $1 and id = $2 and version = $3 for update)
       update link_sessions set ended = case when $4 and before.refused_at is not null then coalesce(before.ended, 'revoked') else before.ended end,
         refused_at = coalesce(before.refused_at, clock_timestamp())
       from before where credential_id = $1 and id = $2 and version = $3
       returning before.ended as before, before.refused_at is null as is_first, link_sessions.ended is not null as is_over`,
      [session.credentialId, session.id, version, isLast],
    )
    const found = refusedRow.optional().parse(rows[0])
    if (found === undefined) return 'replaced'
    if (found.is_first && !found.is_over) await tell(query, session)
    if (found.is_over && found.before === null)
      await recordEnd(query, SERVICE, session, {
        action: 'link.ended',
        ...difference(NOT_ENDED, { ended: 'revoked' }),
      })
    return found.is_over ? 'ended' : 'marked'
  })
}

const refusedRow = z.object({ before: z.string().nullable(), is_first: z.boolean(), is_over: z.boolean() })

/** Its platform takes its tokens again. */
export async function forgetRefusal(pool: pg.Pool, { credentialId, id }: Session): Promise<void> {
  await pool.query('update link_sessions set refused_at = null where credential_id = $1 and id = $2', [
    credentialId,
    id,
  ])
}

/** Those that have ended and whose platform is to be told, and those of keys and grants that nobody can use any more. */
export async function findEnding(pool: pg.Pool, most: number): Promise<readonly Session[]> {
  const { rows } = await pool.query(
    `select ${COLUMNS} from link_sessions where ended = 'ending' or exists (
       select from credentials left join api_keys k using (id) left join grants g using (id) where credentials.id = credential_id
         and (not active or k.revoked_at is not null or k.expires_at < clock_timestamp() or g.expires_at < clock_timestamp()))
     limit $1`,
    [most],
  )
  return z.array(row).parse(rows)
}

export async function deleteSession(
  pool: pg.Pool,
  { credentialId, id }: Pick<Session, 'credentialId' | 'id'>,
): Promise<void> {
  await pool.query('delete from link_sessions where credential_id = $1 and id = $2', [credentialId, id])
}

/** Takes back one that may have been kept although nobody was told so. */
export async function takeBackSession(pool: pg.Pool, session: Pick<Session, 'credentialId' | 'id'>): Promise<void> {
  await inTransaction(pool, async (query) => {
    const { rowCount } = await query('delete from link_sessions where credential_id = $1 and id = $2', [
      session.credentialId,
      session.id,
    ])
    if (rowCount === 1) await recordEnd(query, SERVICE, session, { action: 'link.removed', before: {}, after: null })
  })
}

/** The session that may be undone by this; undefined where it has been, or it is too late. */
export async function findByUndo(pool: pg.Pool, undoHash: Buffer): Promise<Session | undefined> {
  const { rows } = await pool.query(
    `select ${COLUMNS} from link_sessions where undo_hash = $1 and undo_until > clock_timestamp()`,
    [undoHash],
  )
  return row.optional().parse(rows[0])
}
