import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import type { Seal } from '../kernel/seal.ts'
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
  readonly ended: 'expired' | 'revoked' | 'lost' | null
  readonly linkedAt: Date
  readonly accessUntil: Date
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
    ended: z.enum(['expired', 'revoked', 'lost']).nullable(),
    linked_at: z.date(),
    access_until: z.date(),
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
    }),
  )

const COLUMNS = `id, credential_id, upstream_id, user_id, username, scopes, version, can_refresh, ended, linked_at, access_until,
  access_until > clock_timestamp() + interval '${FRESH_SECONDS} seconds' as is_fresh,
  case when refreshing_since is null then 'no'
    when refreshing_since > clock_timestamp() - interval '${REFRESH_SECONDS} seconds' then 'yes' else 'lost' end as refreshing`

export async function findSession(pool: pg.Pool, credentialId: Id): Promise<Session | undefined> {
  const { rows } = await pool.query(`select ${COLUMNS} from link_sessions where credential_id = $1`, [credentialId])
  return row.optional().parse(rows[0])
}

const sealed = z.object({ wrapped_key: z.instanceof(Buffer), tokens: z.instanceof(Buffer) })

/** The tokens of a session as it was seen; undefined where it is another one by now. */
export async function readTokens(pool: pg.Pool, seal: Seal, session: Session): Promise<Kept | undefined> {
  const { rows } = await pool.query(
    'select wrapped_key, tokens from link_sessions where credential_id = $1 and id = $2 and version = $3',
    [session.credentialId, session.id, session.version],
  )
  const found = sealed.optional().parse(rows[0])
  if (found === undefined) return undefined
  return openTokens(seal, session.credentialId, { wrappedKey: found.wrapped_key, tokens: found.tokens })
}

type NewSession = {
  readonly id: Id
  readonly credentialId: Id
  readonly upstreamId: Id
  readonly user: { readonly id: string; readonly username: string } | null
  readonly tokens: Tokens
  readonly undoHash: Buffer
  readonly undoSeconds: number
}

/** Keeps what a platform gave. What the key had before is gone. */
export async function storeSession(pool: pg.Pool, seal: Seal, session: NewSession): Promise<void> {
  const { id, credentialId, upstreamId, user, tokens, undoHash, undoSeconds } = session
  const { wrappedKey, tokens: kept } = wrapTokens(seal, credentialId, tokens)
  await pool.query(
    `insert into link_sessions (credential_id, id, upstream_id, user_id, username, scopes, wrapped_key, tokens,
       access_until, can_refresh, undo_hash, undo_until)
     values ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp() + make_interval(secs => $9), $10, $11,
       clock_timestamp() + make_interval(secs => $12))
     on conflict (credential_id) do update set id = excluded.id, upstream_id = excluded.upstream_id,
       user_id = excluded.user_id, username = excluded.username, scopes = excluded.scopes,
       wrapped_key = excluded.wrapped_key, tokens = excluded.tokens, access_until = excluded.access_until,
       can_refresh = excluded.can_refresh, version = 1, refreshing_since = null, ended = null,
       undo_hash = excluded.undo_hash, undo_until = excluded.undo_until, linked_at = clock_timestamp(), refreshed_at = null`,
    [
      ...[credentialId, id, upstreamId, user?.id ?? null, user?.username ?? null, tokens.scopes, wrappedKey, kept],
      ...[tokens.expiresInSeconds, tokens.refresh !== null, undoHash, undoSeconds],
    ],
  )
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

/** Keeps what came of a refresh. A platform that gives no new refresh token lets the old one work on. */
export async function storeRefreshed(
  pool: pg.Pool,
  seal: Seal,
  session: Session,
  before: Kept,
  tokens: Tokens,
): Promise<void> {
  const { credentialId, id, version } = session
  const kept = wrapTokens(seal, credentialId, { access: tokens.access, refresh: tokens.refresh ?? before.refresh })
  await pool.query(
    `update link_sessions set wrapped_key = $4, tokens = $5, scopes = $6, version = version + 1, refreshing_since = null,
       access_until = clock_timestamp() + make_interval(secs => $7), refreshed_at = clock_timestamp()
     where credential_id = $1 and id = $2 and version = $3`,
    [credentialId, id, version, kept.wrappedKey, kept.tokens, tokens.scopes, tokens.expiresInSeconds],
  )
}

/** Nothing is written with it from now on. Its user can still undo it, so that the platform hears of it too. */
export async function endSession(
  pool: pg.Pool,
  { credentialId, id }: Session,
  why: NonNullable<Session['ended']>,
): Promise<void> {
  await pool.query('update link_sessions set ended = coalesce(ended, $3) where credential_id = $1 and id = $2', [
    credentialId,
    id,
    why,
  ])
}

export async function deleteSession(pool: pg.Pool, { credentialId, id }: Session): Promise<void> {
  await pool.query('delete from link_sessions where credential_id = $1 and id = $2', [credentialId, id])
}

/** The session that may be undone by this; undefined where it has been, or it is too late. */
export async function findByUndo(pool: pg.Pool, undoHash: Buffer): Promise<Session | undefined> {
  const { rows } = await pool.query(
    `select ${COLUMNS} from link_sessions where undo_hash = $1 and undo_until > clock_timestamp()`,
    [undoHash],
  )
  return row.optional().parse(rows[0])
}
