import type pg from 'pg'
import { z } from 'zod'
import type { Clock } from '../kernel/clock.ts'
import { Fault, unavailable } from '../kernel/fault.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import type { Seal } from '../kernel/seal.ts'
import type { Secret } from '../kernel/secret.ts'
import type { Log } from '../telemetry/log.ts'
import { type Attempt, beginAttempt, hashOf, randomText, takeAttempt } from './attempts.ts'
import { authorizationUrl, exchangeCode, NEEDED_FOR_USER, type Platform, readUser, revokeToken } from './platform.ts'
import { createRefresh } from './refresh.ts'
import {
  deleteSession,
  endSession,
  findByUndo,
  findSession,
  readTokens,
  type Session,
  storeSession,
} from './sessions.ts'

/** Platform accounts that users have linked to keys. */
export type Links = {
  /** Where a user is to decide, for a key that wants to act for it. */
  readonly start: (request: StartRequest) => Promise<Started>
  /** What a user brings back from the platform. */
  readonly finish: (back: { readonly state: string; readonly code: string | undefined }) => Promise<Finished>
  /** Ends what was just linked, for whoever linked it. */
  readonly undo: (token: string) => Promise<'undone' | 'unknown'>
  /** The one of a key, if any. */
  readonly list: (credentialId: Id) => Promise<readonly Session[]>
  /** Ends one, here and at the platform. False where there is none of that id. */
  readonly revoke: (credentialId: Id, id: string) => Promise<boolean>
  /** The linked account that a key's call acts for, or the fault that says how to get one. */
  readonly require: (credentialId: Id, scopes: readonly string[]) => Promise<Session>
  /** A token of it that is good for a while. Refreshed where it must be, once whoever asks. */
  readonly tokenOf: (session: Session) => Promise<Secret>
  /** The platform does not take its token any more. */
  readonly refused: (session: Session) => Promise<void>
}

type StartRequest = {
  readonly credentialId: Id
  readonly mode: 'live' | 'test'
  /** Undefined for the default set. */
  readonly scopes: readonly string[] | undefined
  readonly redirectUri: string
}

export type Started = {
  readonly authUrl: string
  readonly state: string
  readonly expiresAt: Date
  readonly scopes: readonly string[]
}

export type Finished =
  | {
      readonly outcome: 'linked'
      /** Who will act for the account. */
      readonly workspace: string
      readonly username: string | null
      readonly scopes: readonly string[]
      /** By which the user can undo it, for a while. */
      readonly undoToken: string
    }
  | { readonly outcome: 'denied' | 'expired' | 'used' | 'unknown' | 'failed' }

type Parts = {
  readonly pool: pg.Pool
  /** Null without a master key: tokens can't be kept then. */
  readonly seal: Seal | null
  readonly ids: Ids
  readonly clock: Clock
  readonly log: Log
  readonly platforms: {
    readonly ofMode: (mode: 'live' | 'test') => Promise<Platform | undefined>
    readonly byId: (upstreamId: Id) => Promise<Platform | undefined>
  }
  /** Whether sessions are to outlive their first access token. */
  readonly offlineAccess: boolean
  /** How a caller links an account. */
  readonly howToLink: string
}

export const DEFAULT_SCOPES: readonly string[] = [
  ...['follows.write', 'tweet.read', 'users.read', 'tweet.write', 'like.write', 'dm.read', 'dm.write'],
]
const OFFLINE = 'offline.access'
const LINK_SECONDS = 600
const UNDO_SECONDS = 600

export function createLinks(parts: Parts): Links {
  const { pool, ids, log, platforms, offlineAccess, howToLink } = parts
  const seal = () => parts.seal ?? fail(notConfigured())
  const refresh = createRefresh({ ...parts, seal, needsLink })

  function needsLink(why: string): Fault {
    return new Fault('link_required', { detail: `${why} ${howToLink}` })
  }

  async function start({ credentialId, mode, scopes = DEFAULT_SCOPES, redirectUri }: StartRequest): Promise<Started> {
    const platform = await platforms.ofMode(mode)
    if (platform === undefined) throw notConfigured()
    const asked = [...new Set(offlineAccess ? [...scopes, OFFLINE] : scopes)]
    const attempt = await beginAttempt(pool, seal(), {
      ...{ credentialId, upstreamId: platform.upstreamId, scopes: asked, redirectUri, lifeSeconds: LINK_SECONDS },
    }).catch(asUnavailable)
    const authUrl = await authorizationUrl(platform, attempt)
    return { authUrl, state: attempt.state, expiresAt: attempt.expiresAt, scopes: asked }
  }

  async function finish({ state, code }: { state: string; code: string | undefined }): Promise<Finished> {
    const taken = await takeAttempt(pool, seal(), state).catch(asUnavailable)
    if (typeof taken === 'string') return { outcome: taken }
    if (code === undefined) return { outcome: 'denied' }
    const before = await findSession(pool, taken.credentialId).catch(asUnavailable)
    const tokens = before && (await readTokens(pool, seal(), before).catch(() => undefined))
    const linked = await link(taken, code).catch((error: unknown) => {
      log.warn('an account could not be linked', { key_id: taken.credentialId, error })
      return { outcome: 'failed' } as const
    })
    // What the key had before is of no use to anybody: its platform is told, as far as it listens.
    if (linked.outcome === 'linked' && before !== undefined)
      await tellPlatform(before, tokens?.refresh ?? tokens?.access).catch(() => {})
    return linked
  }

  async function link(attempt: Attempt, code: string): Promise<Finished> {
    const { credentialId, upstreamId } = attempt
    const platform = await platforms.byId(upstreamId)
    if (platform === undefined) throw notConfigured()
    const tokens = await exchangeCode(platform, attempt, code)
    const maySee = NEEDED_FOR_USER.every((scope) => tokens.scopes.includes(scope))
    const user = maySee ? await readUser(platform, tokens.access) : null
    const undoToken = randomText()
    const kept = { id: ids.next(), credentialId, upstreamId, user, tokens }
    await storeSession(pool, seal(), { ...kept, undoHash: hashOf(undoToken), undoSeconds: UNDO_SECONDS })
    const workspace = await workspaceOf(pool, credentialId)
    return { outcome: 'linked', workspace, username: user?.username ?? null, scopes: tokens.scopes, undoToken }
  }

  /** Of a session that has ended here; the one that has taken its place stays. */
  async function tellPlatform(session: Session, token: Secret | undefined): Promise<void> {
    const platform = await platforms.byId(session.upstreamId)
    if (platform !== undefined && token !== undefined) await revokeToken(platform, token)
  }

  /** It is over here first, so that nothing is written with it whatever the platform says. */
  async function end(session: Session): Promise<void> {
    await endSession(pool, session, 'revoked').catch(asUnavailable)
    // Refreshed since it was seen, it has other tokens.
    const now = await findSession(pool, session.credentialId).catch(asUnavailable)
    const tokens = now?.id === session.id ? await readTokens(pool, seal(), now).catch(asUnavailable) : undefined
    try {
      await tellPlatform(session, tokens?.refresh ?? tokens?.access)
    } catch (cause) {
      const detail = 'It is not used any more. The platform could not be told: try again.'
      throw new Fault('upstream_transport', { detail, cause })
    }
    await deleteSession(pool, session).catch(asUnavailable)
  }

  return {
    start,
    finish,
    async undo(token) {
      const session = await findByUndo(pool, hashOf(token)).catch(asUnavailable)
      if (session === undefined) return 'unknown'
      await end(session)
      return 'undone'
    },
    async list(credentialId) {
      const session = await findSession(pool, credentialId).catch(asUnavailable)
      return session === undefined ? [] : [session]
    },
    async revoke(credentialId, id) {
      const session = await findSession(pool, credentialId).catch(asUnavailable)
      if (session === undefined || session.id !== id) return false
      await end(session)
      return true
    },
    async require(credentialId, scopes) {
      const session = await findSession(pool, credentialId).catch(asUnavailable)
      if (session === undefined) throw needsLink('No account is linked to this key.')
      if (session.ended !== null) throw needsLink(`The link has ended (${session.ended}).`)
      const missing = scopes.filter((scope) => !session.scopes.includes(scope))
      if (missing.length > 0)
        throw new Fault('link_scope_missing', { detail: `It lacks ${missing.join(', ')}. ${howToLink}` })
      return session
    },
    tokenOf: refresh,
    refused: (session) => endSession(pool, session, 'revoked').catch(asUnavailable),
  }
}

async function workspaceOf(pool: pg.Pool, credentialId: Id): Promise<string> {
  const { rows } = await pool.query(
    `select workspaces.name from api_keys join workspaces on workspaces.id = workspace_id where api_keys.id = $1`,
    [credentialId],
  )
  return z.object({ name: z.string() }).parse(rows[0]).name
}

function notConfigured(): Fault {
  return new Fault('managed_upstream_transport', { detail: 'No platform is configured to link accounts of.' })
}

function fail(fault: Fault): never {
  throw fault
}

function asUnavailable(cause: unknown): never {
  throw cause instanceof Fault ? cause : unavailable(cause)
}
