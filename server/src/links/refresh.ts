import type pg from 'pg'
import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Seal } from '../kernel/seal.ts'
import type { Secret } from '../kernel/secret.ts'
import { SERVICE } from '../storage/audit.ts'
import type { Log } from '../telemetry/log.ts'
import { onBehalfOf, type Platform, Refused, refreshTokens, revokeToken, Unasked } from './platform.ts'
import {
  beginRefresh,
  endSession,
  findSession,
  leaveRefresh,
  readTokens,
  type Session,
  storeRefreshed,
} from './sessions.ts'

type Parts = {
  readonly pool: pg.Pool
  readonly seal: () => Seal
  readonly clock: Clock
  readonly log: Log
  readonly platforms: { readonly byId: (upstreamId: Id) => Promise<Platform | undefined> }
  /** The fault that tells a caller to link again, and why. */
  readonly needsLink: (why: string) => Fault
}

const LOOK_MS = 50
const LONGEST_MS = 15_000
const WRITE_TRIES = 20
const WRITE_AGAIN_MS = 500

/**
 * A good access token of a session. A refresh token works once, so only one of all processes spends it: the one that PostgreSQL
 * lets. The others wait for what comes of it. Where nobody can know whether it was spent, it is not tried again: the user has
 * to link anew.
 */
export function createRefresh({ pool, seal, clock, log, platforms, needsLink }: Parts) {
  async function tokenOf(asked: Session, callId: Id): Promise<AccessToken> {
    const deadlineMs = clock.monotonicMs() + LONGEST_MS
    while (clock.monotonicMs() < deadlineMs) {
      const session = await current(asked)
      if (session.isFresh) {
        const found = await kept(session)
        if (found !== undefined) return found
      } else if (!session.canRefresh) await endAndRefuse(session, 'expired')
      else if (session.refreshing === 'lost') await endAndRefuse(session, 'lost')
      else if (session.refreshing === 'yes') await clock.sleep(LOOK_MS)
      else {
        const refreshed = await refresh(session, callId)
        if (refreshed !== undefined) return refreshed
      }
    }
    throw new Fault('upstream_transport', {
      detail: 'The session could not be refreshed in time.',
      retryAfterSeconds: 5,
    })
  }

  /** One that somebody else has got since; undefined where there is none. */
  async function newerThan(version: number, asked: Session): Promise<AccessToken | undefined> {
    const session = await current(asked)
    return session.isFresh && session.version > version ? kept(session) : undefined
  }

  /** The session as it is now, or the fault where it is over. */
  async function current({ credentialId, id }: Session): Promise<Session> {
    const session = await findSession(pool, credentialId)
    if (session === undefined || session.id !== id) throw needsLink('The link has since ended or been replaced.')
    if (session.ended !== null) throw needsLink(`The link has ended (${session.ended}).`)
    return session
  }

  /** Undefined where it has another one by now. */
  async function kept(session: Session): Promise<AccessToken | undefined> {
    const tokens = await readTokens(pool, seal(), session)
    return tokens && { token: tokens.access, version: session.version, isRefreshedByUs: false }
  }

  /** Undefined where somebody else is at it. The platform is asked once, and once more to end what nobody would use. */
  async function refresh(session: Session, callId: Id): Promise<AccessToken | undefined> {
    // What can fail without the platform comes before we say that we are at it: nobody would know whether the token was spent.
    const before = await readTokens(pool, seal(), session)
    const found = await platforms.byId(session.upstreamId)
    if (before === undefined) return undefined
    if (before.refresh === null || found === undefined) throw needsLink('The link cannot be refreshed.')
    const platform = onBehalfOf(callId, found)
    if (!(await beginRefresh(pool, session))) {
      await clock.sleep(LOOK_MS)
      return undefined
    }
    try {
      const tokens = await refreshTokens(platform, before.refresh, session.scopes)
      if (await written(() => storeRefreshed(pool, seal(), session, before, tokens)))
        return { token: tokens.access, version: session.version + 1, isRefreshedByUs: true }
      // The link was replaced meanwhile: nobody would ever end these.
      await revokeToken(platform, tokens.refresh ?? tokens.access).catch(() => {})
    } catch (error) {
      if (error instanceof Unasked) {
        await leaveRefresh(pool, session)
        throw new Fault('upstream_transport', { cause: error })
      }
      log.warn('a session could not be refreshed', { key_id: session.credentialId, error })
      return endAndRefuse(session, error instanceof Refused ? 'revoked' : 'lost')
    }
    throw needsLink('The link has since ended or been replaced.')
  }

  async function endAndRefuse(session: Session, why: NonNullable<Session['ended']>): Promise<never> {
    await endSession(pool, session, why, { by: SERVICE, action: 'link.ended' })
    throw needsLink(`The link has ended (${why}).`)
  }

  /** What a platform gave is worth some patience: it gives it once. */
  async function written(write: () => Promise<boolean>): Promise<boolean> {
    for (let tried = 1; ; tried += 1) {
      try {
        return await write()
      } catch (error) {
        if (tried === WRITE_TRIES) throw error
        await clock.sleep(WRITE_AGAIN_MS)
      }
    }
  }

  return { tokenOf, newerThan }
}

export type AccessToken = {
  readonly token: Secret
  /** Of the session, when it had it. */
  readonly version: number
  /** Whether whoever asked for it has spent a refresh, and not found one that there was. */
  readonly isRefreshedByUs: boolean
}
