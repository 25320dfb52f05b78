import type pg from 'pg'
import { z } from 'zod'
import type { Clock } from '../kernel/clock.ts'
import { asUnavailable, Fault, invalidRequest } from '../kernel/fault.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Seal } from '../kernel/seal.ts'
import type { By, Origin } from '../storage/audit.ts'
import type { Log } from '../telemetry/log.ts'
import { type Attempt, beginAttempt, decideAttempt, hashOf, randomText, takeAttempt } from './attempts.ts'
import { type Offer, openOffer, sealOffer } from './offers.ts'
import {
  authorizationUrl,
  exchangeCode,
  NEEDED_FOR_USER,
  type Platform,
  readUser,
  revokeToken,
  type Tokens,
} from './platform.ts'
import { type AccessToken, createRefresh } from './refresh.ts'
import {
  deleteSession,
  distrust,
  endSession,
  findByUndo,
  findEnding,
  findSession,
  forgetRefusal,
  type LinksPage,
  readTokens,
  refuseAt,
  type Session,
  sessionsOfAccount,
  storeSession,
  type TellOwner,
  takeBackSession,
} from './sessions.ts'
import type { Kept } from './tokens.ts'

/** Platform accounts that users have linked to keys. */
export type Links = {
  /** Where a user is to decide, for a key that wants to act for it. */
  readonly start: (request: StartRequest) => Promise<Started>
  /** What a user brings back from the platform. Nothing is linked yet. */
  readonly finish: (back: Back) => Promise<Finished>
  /** What the user decides who was told for whom it is. */
  readonly decide: (decision: Decision, origin: Origin) => Promise<Decided>
  /** Ends what was just linked, for whoever linked it. */
  readonly undo: (token: string, origin: Origin) => Promise<'undone' | 'unknown'>
  /** The one of a key, if any. */
  readonly list: (credentialId: Id) => Promise<readonly Session[]>
  /** Those of the keys of an account, behind one of them in the order of the keys' ids. */
  readonly listOfAccount: (accountId: Id, page: LinksPage) => Promise<readonly Session[]>
  /** Ends one, here and at the platform. False where there is none of that id. */
  readonly revoke: (credentialId: Id, id: string, by: By) => Promise<boolean>
  /** The linked account that a key's call acts for, or the fault that says how to get one. */
  readonly require: (credentialId: Id, scopes: readonly string[]) => Promise<Session>
  /** A token of it that is good for a while, for a call. Refreshed where it must be, once whoever asks. */
  readonly tokenOf: (session: Session, callId: Id) => Promise<AccessToken>
  /** The platform did not take a token: another one, within what is left to the call, or the fault that says what to do. */
  readonly another: (session: Session, refused: AccessToken, left: Left) => Promise<AccessToken>
  /** The platform has done what a call asked, so that an earlier refusal says nothing any more. */
  readonly accepted: (session: Session) => Promise<void>
  /** Tells platforms of links that ended without it, and of those of keys that are no more. How many. */
  readonly sweep: (by: By) => Promise<number>
}

/** What a call may still ask of its platform. */
export type Left = { readonly id: Id; readonly requests: number; readonly refreshes: number }

type Back = {
  readonly state: string
  /** Undefined where the platform brings none. */
  readonly code: string | undefined
  /** Whether that is because the user did not allow it. */
  readonly isDenied: boolean
}

export type Decision = { readonly offer: string; readonly isAllowed: boolean }

type StartRequest = {
  readonly credentialId: Id
  readonly mode: Mode
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

type Linked = {
  /** Who will act for the account. */
  readonly workspace: string
  readonly username: string | null
  readonly scopes: readonly string[]
}

type NotLinked = { readonly outcome: 'denied' | 'expired' | 'used' | 'unknown' | 'failed' }

/** `offer` is what the user sends back to confirm it. */
export type Finished = (Linked & { readonly outcome: 'asked'; readonly offer: string }) | NotLinked

/** By `undoToken` the user can undo it, for a while. */
export type Decided = (Linked & { readonly outcome: 'linked'; readonly undoToken: string }) | NotLinked

type Parts = {
  readonly pool: pg.Pool
  /** Null without a master key: tokens can't be kept then. */
  readonly seal: Seal | null
  readonly ids: Ids
  readonly clock: Clock
  readonly log: Log
  readonly platforms: {
    readonly ofMode: (mode: Mode) => Promise<Platform | undefined>
    readonly byId: (upstreamId: Id) => Promise<Platform | undefined>
  }
  /** Whether sessions are to outlive their first access token. */
  readonly offlineAccess: boolean
  /** Tells whom an account belongs to that its platform refuses it. */
  readonly tellRefused: TellOwner
  /** How a caller links an account. */
  readonly howToLink: string
}

export const DEFAULT_SCOPES: readonly string[] = [
  ...['follows.write', 'tweet.read', 'users.read', 'tweet.write', 'like.write', 'dm.read', 'dm.write'],
]
const OFFLINE = 'offline.access'
const LINK_SECONDS = 600
const UNDO_SECONDS = 600
const DECIDED_WITHIN_SECONDS = 600
const SWEPT_MOST = 50
const UNDO = /^[A-Za-z0-9_-]{43}$/
const REFUSED = 'The link has ended (revoked): the platform no longer accepts its tokens.'
/** A platform that refuses by mistake may have stopped by then. */
const REFUSED_SECONDS = 30
const LOOK_MS = 50
/** Whoever refreshes has an answer by then. */
const LAST_REFRESH_MS = 11_000

export function createLinks(parts: Parts): Links {
  const { pool, ids, clock, log, platforms, offlineAccess, tellRefused, howToLink } = parts
  const seal = () => parts.seal ?? fail(notConfigured())
  const refresh = createRefresh({ ...parts, seal, needsLink })

  function needsLink(why: string): Fault {
    return new Fault('link_required', { detail: `${why} ${howToLink}` })
  }

  async function start({ credentialId, mode, scopes = DEFAULT_SCOPES, redirectUri }: StartRequest): Promise<Started> {
    if (!offlineAccess && scopes.some(asksForOffline)) throw offlineRefused()
    const platform = await platforms.ofMode(mode)
    if (platform === undefined) throw notConfigured()
    const asked = [...new Set(offlineAccess ? [...scopes, OFFLINE] : scopes)]
    const attempt = await beginAttempt(pool, seal(), {
      ...{ credentialId, upstreamId: platform.upstreamId, scopes: asked, redirectUri, lifeSeconds: LINK_SECONDS },
    }).catch(asUnavailable)
    const authUrl = await authorizationUrl(platform, attempt)
    return { authUrl, state: attempt.state, expiresAt: attempt.expiresAt, scopes: asked }
  }

  async function finish({ state, code, isDenied }: Back): Promise<Finished> {
    const taken = await takeAttempt(pool, seal(), state).catch(asUnavailable)
    if (typeof taken === 'string') return { outcome: taken }
    if (code === undefined) return { outcome: isDenied ? 'denied' : 'failed' }
    return ask(taken, code).catch(failed(taken))
  }

  function failed({ credentialId }: Pick<Attempt, 'credentialId'>) {
    return (error: unknown) => {
      log.warn('an account could not be linked', { key_id: credentialId, error })
      return { outcome: 'failed' } as const
    }
  }

  /** Reads whose account it is, so that the user can be asked whether it is to be linked for this workspace. */
  async function ask(attempt: Attempt, code: string): Promise<Finished> {
    const { credentialId, upstreamId } = attempt
    const platform = await platformOf(upstreamId)
    const workspace = await workspaceOf(pool, credentialId)
    const tokens = await exchangeCode(platform, attempt, code)
    try {
      const maySee = NEEDED_FOR_USER.every((scope) => tokens.scopes.includes(scope))
      const user = maySee ? await readUser(platform, tokens.access) : null
      const given = { credentialId, upstreamId, user, tokens, stateHash: hashOf(attempt.state) }
      const offer = sealOffer(seal(), { ...given, id: ids.next(), madeAtMs: clock.nowMs() })
      return { outcome: 'asked', workspace, username: user?.username ?? null, scopes: tokens.scopes, offer }
    } catch (error) {
      await forget(platform, tokens)
      throw error
    }
  }

  async function platformOf(upstreamId: Id): Promise<Platform> {
    return (await platforms.byId(upstreamId)) ?? fail(notConfigured())
  }

  /** Nothing was linked, so nothing may be there either. */
  async function forget(platform: Platform, { refresh, access }: Tokens): Promise<void> {
    await revokeToken(platform, refresh ?? access).catch(() => {})
  }

  async function decide({ offer: text, isAllowed }: Decision, origin: Origin): Promise<Decided> {
    const offer = openOffer(seal(), text)
    if (offer === undefined) return { outcome: 'unknown' }
    const platform = await platformOf(offer.upstreamId)
    const taken = await decideAttempt(pool, offer.credentialId, offer.stateHash).catch(asUnavailable)
    // What was decided before stays as it is.
    if (taken === 'used') return { outcome: 'used' }
    const passedSeconds = (clock.nowMs() - offer.madeAtMs) / 1_000
    const isLate = passedSeconds > DECIDED_WITHIN_SECONDS
    if (taken === 'unknown' || isLate || !isAllowed) {
      await forget(platform, offer.tokens)
      return { outcome: taken === 'unknown' ? 'unknown' : isLate ? 'expired' : 'denied' }
    }
    const expiresInSeconds = Math.max(0, offer.tokens.expiresInSeconds - Math.max(0, passedSeconds))
    const tokens = { ...offer.tokens, expiresInSeconds }
    return keep({ ...offer, tokens }, memberOf(offer, origin)).catch(async (error: unknown) => {
      // The user is told that nothing was linked, so nothing may be: neither here nor there.
      await forget(platform, offer.tokens)
      await takeBackSession(pool, offer).catch(() => {})
      return failed(offer)(error)
    })
  }

  async function keep(offer: Offer, by: By): Promise<Decided> {
    const { id, credentialId, upstreamId, user, tokens, stateHash } = offer
    const workspace = await workspaceOf(pool, credentialId)
    const undoToken = randomText()
    const kept = { id, credentialId, upstreamId, user, tokens, stateHash }
    const undo = { undoHash: hashOf(undoToken), undoSeconds: UNDO_SECONDS }
    const stored = await storeSession(pool, seal(), { ...kept, ...undo }, by)
    if (stored === undefined) throw new Error('the key was revoked, or has begun another link')
    // What the key had before is of no use to anybody: its platform is told, as far as it listens.
    const { replaced } = stored
    if (replaced?.tokens !== undefined)
      await tellPlatform(replaced.upstreamId, replaced.tokens).catch((error: unknown) =>
        log.warn('a link that was replaced could not be ended at its platform', { key_id: credentialId, error }),
      )
    return { outcome: 'linked', workspace, username: user?.username ?? null, scopes: tokens.scopes, undoToken }
  }

  async function tellPlatform(upstreamId: Id, { refresh, access }: Kept): Promise<void> {
    await revokeToken(await platformOf(upstreamId), refresh ?? access)
  }

  /** It is over here first, so that nothing is written with it whatever the platform says. */
  async function end(session: Session, by: By, action: 'link.removed' | 'link.undone' = 'link.removed'): Promise<void> {
    await endSession(pool, session, 'ending', { by, action }).catch(asUnavailable)
    try {
      const tokens = await lastTokens(session)
      if (tokens !== undefined) await tellPlatform(session.upstreamId, tokens)
    } catch (cause) {
      const detail = 'The link is no longer used, but the platform could not be told. Try again.'
      throw new Fault('upstream_transport', { detail, cause })
    }
    await deleteSession(pool, session).catch(asUnavailable)
  }

  /** Of a session that has ended here. One that is being refreshed has others in a moment. */
  async function lastTokens({ credentialId, id }: Session): Promise<Kept | undefined> {
    const deadlineMs = clock.monotonicMs() + LAST_REFRESH_MS
    for (;;) {
      const session = await findSession(pool, credentialId)
      if (session?.id !== id) return undefined
      const isOver = session.refreshing !== 'yes' || clock.monotonicMs() > deadlineMs
      const tokens = isOver ? await readTokens(pool, seal(), session) : undefined
      if (tokens !== undefined) return tokens
      await clock.sleep(LOOK_MS)
    }
  }

  /**
   * A platform may refuse whatever it is shown and give out new tokens for ever, so that a call has one refresh and one more
   * request. One that is refused with the newest token there is marks the link, because a platform may be at fault for a while; the next
   * one ends it. A token that was replaced meanwhile says nothing against it.
   */
  async function another(session: Session, { version }: AccessToken, left: Left): Promise<AccessToken> {
    if (left.requests > 0 && left.refreshes > 0 && (await distrust(pool, session, version)))
      return refresh.tokenOf(session, left.id)
    const become = await refuseAt(pool, session, version, tellRefused)
    if (become !== 'replaced') {
      // One is a user's doing. Many at once are the platform's, and somebody should know.
      log.warn(`a link was ${become}: its platform refused the newest token`, { key_id: session.credentialId })
      throw become === 'ended' ? needsLink(REFUSED) : triedOnceMore()
    }
    const newer = await refresh.newerThan(version, session)
    if (newer !== undefined && left.requests > 0) return newer
    const detail = 'The platform refused a token that has since been replaced. Nothing was done. Try again.'
    throw new Fault('upstream_transport', { detail, retryAfterSeconds: 1 })
  }

  async function accepted(session: Session): Promise<void> {
    if (session.refusedAt === null) return
    await forgetRefusal(pool, session).catch((error: unknown) =>
      log.warn('a link works again, and that could not be written', { key_id: session.credentialId, error }),
    )
  }

  return {
    start,
    finish,
    decide,
    accepted,
    async undo(token, origin) {
      if (!UNDO.test(token)) return 'unknown'
      const session = await findByUndo(pool, hashOf(token)).catch(asUnavailable)
      if (session === undefined) return 'unknown'
      await end(session, memberOf(session, origin), 'link.undone')
      return 'undone'
    },
    async list(credentialId) {
      const session = await findSession(pool, credentialId).catch(asUnavailable)
      return session === undefined ? [] : [session]
    },
    listOfAccount: (accountId, page) => sessionsOfAccount(pool, accountId, page).catch(asUnavailable),
    async revoke(credentialId, id, by) {
      const session = await findSession(pool, credentialId).catch(asUnavailable)
      if (session === undefined || session.id !== id) return false
      await end(session, by)
      return true
    },
    async require(credentialId, scopes) {
      const session = await findSession(pool, credentialId).catch(asUnavailable)
      if (session === undefined) throw needsLink('No account is linked to this key.')
      if (session.ended !== null) throw needsLink(`The link has ended (${session.ended}).`)
      const missing = scopes.filter((scope) => !session.scopes.includes(scope))
      if (missing.length > 0)
        throw new Fault('link_scope_missing', { detail: `Missing: ${missing.join(', ')}. ${howToLink}` })
      return session
    },
    tokenOf: (session, callId) => refresh.tokenOf(session, callId).catch(asUnavailable),
    another: (session, refused, left) => another(session, refused, left).catch(asUnavailable),
    async sweep(by) {
      const ending = await findEnding(pool, SWEPT_MOST)
      for (const session of ending)
        await end(session, by).catch((error: unknown) =>
          log.warn('a platform could not be told that a link has ended', { key_id: session.credentialId, error }),
        )
      return ending.length
    },
  }
}

/** A user of the platform acts for the key that sent it. */
function memberOf({ credentialId }: { readonly credentialId: Id }, origin: Origin): By {
  return { actor: `member ${credentialId}`, origin }
}

async function workspaceOf(pool: pg.Pool, credentialId: Id): Promise<string> {
  const { rows } = await pool.query('select name from workspaces where id = workspace_of(one => $1)', [credentialId])
  return z.object({ name: z.string() }).parse(rows[0]).name
}

/** Also as OpenID spells it. Letters and separators that a scope does not have, the edge refuses. */
function asksForOffline(scope: string): boolean {
  return scope.replaceAll('_', '.') === OFFLINE
}

function triedOnceMore(): Fault {
  const detail =
    'The platform refused the tokens of this link. Nothing was done. The next call tries once more; if they are refused again, the link ends.'
  return new Fault('upstream_transport', { detail, retryAfterSeconds: REFUSED_SECONDS })
}

function offlineRefused(): Fault {
  const detail = `The scope ${OFFLINE} is not available: links here end when their first access token expires. Leave it out, or ask the operator to set links.offline_access.`
  return invalidRequest(detail)
}

function notConfigured(): Fault {
  return new Fault('not_configured', { detail: 'No platform is set up for linked accounts.' })
}

function fail(fault: Fault): never {
  throw fault
}
